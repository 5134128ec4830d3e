// The stream of events: server-sent events, resumed after the last one whenever the connection ends.
import type { Calls } from './calls.ts'
import { ConnectionFailedError, PosthornError } from './errors.ts'
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
/** The texts of a message are cut at 64 KiB each. */
const maxEventLength = 4 * 2 ** 20
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
    const either = signal ? AbortSignal.any([ending.signal, signal]) : ending.signal
    let timer: ReturnType<typeof setTimeout> | undefined
    try {
      const { body } = await this.#calls.stream(operation, headers, either)
      const pieces = body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
      const reader = pieces.getReader()
      let buffered = ''
      for (;;) {
        timer = setTimeout(() => ending.abort(), silentMs)
        const { done, value } = await reader.read()
        clearTimeout(timer)
        if (done) return
        const blocks = (buffered + value).split(/\r\n\r\n|\n\n|\r\r/)
        buffered = blocks.pop()!
        if (buffered.length > maxEventLength) throw new Error('The event is too long.')
        for (const block of blocks) yield* parseEvent(block)
      }
    } catch (error) {
      if (error instanceof PosthornError) throw error
      signal?.throwIfAborted()
      throw new ConnectionFailedError('The stream of events broke.', {
        code: 'connection_failed',
        isTemporary: true,
        cause: error,
      })
    } finally {
      clearTimeout(timer)
      ending.abort()
    }
  }
}

/** Reads one block of https://html.spec.whatwg.org/multipage/server-sent-events.html. A comment yields nothing. */
function* parseEvent(block: string): Generator<StreamEvent, void> {
  let id: string | null = null
  const lines: string[] = []
  for (const line of block.split(/\r\n|\n|\r/)) {
    const [, name, value = ''] = /^(\w+)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'id') id = value
    if (name === 'data') lines.push(value)
  }
  if (lines.length > 0) yield Object.assign(JSON.parse(lines.join('\n')), { id }) as StreamEvent
}
