// The stream of events: server-sent events, resumed after the last one whenever the connection ends.

import { iterate } from './bytes.ts'
import type { Calls } from './calls.ts'
import { ConnectionFailedError, PosthornError, unexpected } from './errors.ts'
import { isRepeatable, waitBefore } from './retries.ts'
import type { StreamEvent } from './types.ts'

export interface EventOptions {
  /** The id of the last event that was read. Without it the stream begins now. */
  lastEventId?: string
  /** Ends the iteration, which then throws the signal's reason. */
  signal?: AbortSignal
}

/** The service sends something at least every 15 seconds. */
const silentMs = 45_000
/** The texts of a message are cut at 64 KiB each, so no event of the service comes near. */
const maxEventLength = 32 * 2 ** 20
const operation = { method: 'GET', path: '/v1/events', fields: 'query' } as const

export class Events {
  readonly #calls: Calls

  constructor(calls: Calls) {
    this.#calls = calls
  }

  /** Iterates over events, without end. After `stream.reset` events may be missing: read the state again. */
  async *watch({ lastEventId, signal }: EventOptions = {}): AsyncGenerator<StreamEvent, void> {
    const { clock } = this.#calls
    let lastId = lastEventId
    for (let attempt = 1; ; attempt++) {
      let retryAfterSeconds: number | null = null
      try {
        for await (const event of this.#read(lastId, signal)) {
          attempt = 0
          lastId = event.id ?? undefined
          yield event
        }
      } catch (error) {
        // Everything else is the caller's signal.
        if (!(error instanceof PosthornError && isRepeatable(error))) throw error
        retryAfterSeconds = error.retryAfterSeconds
      }
      if (attempt === 0) attempt = 1
      await clock.sleep(waitBefore(attempt, retryAfterSeconds, clock.random()), signal)
    }
  }

  /** Reads one connection to its end. */
  async *#read(
    lastId: string | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<StreamEvent, void> {
    const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) }
    const ending = new AbortController()
    const abort = () => ending.abort()
    signal?.addEventListener('abort', abort)
    let timer: ReturnType<typeof setTimeout> | undefined
    const hear = () => {
      clearTimeout(timer)
      timer = setTimeout(abort, silentMs)
    }
    let isOpen = false
    try {
      signal?.throwIfAborted()
      const response = await this.#calls.stream(operation, headers, ending.signal)
      isOpen = true
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw unexpected(response)
      for await (const block of readBlocks(response, hear)) yield* parseEvent(block, response)
    } catch (error) {
      signal?.throwIfAborted()
      // Before it is open, any other error is a mistake of the caller.
      if (error instanceof PosthornError || !isOpen) throw error
      const details = { code: 'connection_failed', isTemporary: true, cause: error }
      throw new ConnectionFailedError('The stream of events broke.', details)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      ending.abort()
    }
  }
}

const blockEnd = /\r\n\r\n|\n\n|\r\r/

/** Reads the blocks of a stream, in linear time. Calls `hear` before each wait for more. */
async function* readBlocks(response: Response, hear: () => void): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let [pieces, length, tail] = [[] as string[], 0, '']
  hear()
  for await (const bytes of iterate(response.body!)) {
    hear()
    const piece = decoder.decode(bytes, { stream: true })
    pieces.push(piece)
    length += piece.length
    // An end of a block may be cut by the border of two pieces.
    tail += piece
    if (blockEnd.test(tail)) {
      const blocks = pieces.join('').split(blockEnd)
      const rest = blocks.pop()!
      ;[pieces, length, tail] = [[rest], rest.length, rest]
      yield* blocks
    }
    tail = tail.slice(-3)
    if (length > maxEventLength)
      throw new PosthornError('The event is too long.', { code: 'too_large', status: response.status })
  }
}

/** Reads one block of https://html.spec.whatwg.org/multipage/server-sent-events.html. A comment yields nothing. */
function* parseEvent(block: string, response: Response): Generator<StreamEvent, void> {
  let id: string | null = null
  const lines: string[] = []
  for (const line of block.split(/\r\n|\n|\r/)) {
    const [, name, value = ''] = /^(\w+)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'id') id = value
    if (name === 'data') lines.push(value)
  }
  if (lines.length > 0) yield { ...parseObject(lines.join('\n'), response), id } as StreamEvent
}

function parseObject(text: string, response: Response): object {
  try {
    const event: unknown = JSON.parse(text)
    if (typeof event === 'object' && event !== null) return event
  } catch {
    // It is no JSON, so it is refused below.
  }
  throw unexpected(response)
}
