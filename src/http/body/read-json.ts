// Reads a request's body within the limits of its operation, of its organization's memory, and of time.

import type { IncomingMessage } from 'node:http'
import { setImmediate as nextTick } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { FairLimit } from '../../base/fair-limit.ts'
import type { Api } from '../api.ts'
import type { JsonStream } from '../json-stream.ts'
import { type ByteBudget, Holding } from './byte-budget.ts'
import { LargeBodies } from './large-bodies.ts'
import { parseJson } from './parse-json.ts'
import { RequestFault } from './request-fault.ts'

const mebibyte = 1 << 20
/** Enough for every operation that sets no other limit. */
const smallBytes = 64 * 1024
/** Larger bodies are read in a worker thread. Reading one of this size blocks the main thread for 3 to 8 ms. */
const maxAtOnce = 256 * 1024
/**
 * The longest pause between two chunks. A body that takes longer in all must have brought `slowestBytesPerMs` for each
 * millisecond beyond it.
 */
const timeLimitMs = 10_000
const slowestBytesPerMs = 16
const checkMs = 1_000

/**
 * The largest body of a caller. Leaves room for base64 and escapes, so that too large a message gets the error that
 * names its content.
 */
export function bodyLimitBytes(messageContentBytes: number): number {
  return Math.ceil(messageContentBytes * 1.5) + mebibyte
}

type Done = (fault: Error | null, body?: unknown) => void

/**
 * Reads the JSON body of each operation that has one, once the caller is known. Throws `invalid_json`, `invalid_request`,
 * `payload_too_large`, and the refusals of `budget`.
 */
export function takeJson(api: Api, budget: ByteBudget): void {
  const unfinished = new Unfinished()
  const reader = new BodyReader()
  api.addHook('onClose', () => reader.close())
  api.removeAllContentTypeParsers()
  api.addHook('preParsing', (request, reply, _payload, done) => {
    if (takesBody(request)) request.holding = new Holding(budget, holderOf(request), reply.raw)
    done()
  })
  api.addContentTypeParser(
    'application/json',
    (request: FastifyRequest, payload: IncomingMessage, done: Done) => {
      if (!takesBody(request)) {
        done(null)
        return
      }
      const encoding = request.headers['content-encoding']
      if (encoding !== undefined && encoding !== 'identity')
        throw new RequestFault('invalid_json', 'Send the body without content-encoding.')
      const limitBytes = Math.min(largestBody(request), budget.shareBytes)
      const body = new IncomingBody(limitBytes, request.holding, (fault, bytes) => {
        unfinished.delete(body)
        if (fault) done(fault)
        else if (bytes.length <= smallBytes) parseInto(done, bytes)
        else reader.read(request, bytes, done)
      })
      unfinished.add(body)
      body.read(payload)
    },
  )
  api.addContentTypeParser('*', refuseOtherTypes)
}

/** The holder of a body's memory: the organization, else the signed-in person, else the client's address. */
function holderOf({ caller, signedIn, ip }: FastifyRequest): string {
  return caller?.organizationId ?? signedIn?.person.id ?? ip
}

function parseInto(done: Done, bytes: Buffer): void {
  let value: unknown
  try {
    value = parseJson(bytes)
  } catch (error) {
    done(error as Error)
    return
  }
  done(null, value)
}

/** Reads bodies one at a time, round robin by organization. The largest are read in a worker thread. */
class BodyReader {
  readonly #here = new FairLimit(1)
  readonly #largeBodies = new FairLimit(1)
  readonly #large = new LargeBodies()

  read(request: FastifyRequest, bytes: Buffer, done: Done): void {
    const { holding, caller } = request
    const isLarge = bytes.length > maxAtOnce
    let kept: Buffer | null = bytes
    const take = () => {
      const taken = kept
      kept = null
      return taken
    }
    // Once the client has left, the body's bytes are no longer counted, so they are dropped.
    holding.onOver(take)
    const work = () => {
      const waited = holding.isOver ? null : take()
      if (!waited) done(endedEarly())
      else if (isLarge) return this.#readLarge(request, waited, done)
      else parseInto(done, waited)
    }
    const limit = isLarge ? this.#largeBodies : this.#here
    // In a new turn of the event loop, because several bodies can end in the same one.
    void limit.run(caller.organizationId, () => nextTick().then(work))
  }

  /** A body of this size came in several chunks, so it owns its memory. */
  #readLarge(request: FastifyRequest, bytes: Buffer, done: Done): Promise<void> {
    const reading = this.#large.read(bytes, request.params as object)
    return reading.then(({ value, large }) => {
      request.large = large
      done(null, value)
    }, done)
  }

  close(): Promise<void> {
    return this.#large.close()
  }
}

function endedEarly(): RequestFault {
  return new RequestFault('invalid_json', 'The body is incomplete.')
}

/** Refuses a body that is not JSON if JSON is expected. Otherwise ignores it. */
async function refuseOtherTypes(request: FastifyRequest): Promise<undefined> {
  if (takesBody(request)) throw new RequestFault('invalid_json', 'Send content-type: application/json.')
}

function takesBody(request: FastifyRequest): boolean {
  return !request.is404 && request.routeOptions.schema?.body !== undefined
}

function largestBody({ routeOptions, caller }: FastifyRequest): number {
  const { largestBody = smallBytes } = routeOptions.config
  return largestBody === 'message' ? bodyLimitBytes(caller.limits.messageContentBytes) : largestBody
}

/**
 * A body that is still arriving. The rest of a refused body is read and dropped, up to twice the limit in all, before the
 * answer is sent. Most clients read only after they have written everything, and would lose an earlier answer.
 */
class IncomingBody {
  readonly #limitBytes: number
  /** The limit, or the announced length if that is smaller. */
  #maxBytes: number
  readonly #holding: Holding
  readonly #finish: (fault: Error | null, bytes: Buffer) => void
  readonly #startedMs = performance.now()
  #latestMs = this.#startedMs
  #sizeBytes = 0
  /**
   * The bytes so far, in a buffer that doubles. Keeping each chunk separately would cost a hundred bytes per chunk,
   * even of one byte.
   */
  #bytes: Buffer = nothing
  #fault: Error | null = null
  #isDone = false

  constructor(limitBytes: number, holding: Holding, finish: (fault: Error | null, bytes: Buffer) => void) {
    this.#limitBytes = limitBytes
    this.#maxBytes = limitBytes
    this.#holding = holding
    this.#finish = finish
  }

  read(payload: IncomingMessage): void {
    const announcedBytes = Number(payload.headers['content-length'] ?? this.#limitBytes)
    if (announcedBytes > 2 * this.#limitBytes) {
      this.#end(this.#tooLarge())
      return
    }
    this.#maxBytes = Math.min(announcedBytes, this.#limitBytes)
    payload.on('data', (chunk: Buffer) => this.#take(chunk))
    payload.on('end', () => this.#end(this.#fault))
    // The caller left, so this answer is never read.
    payload.on('error', () => this.#end(endedEarly()))
  }

  /** Ends the body if it stalled, or if it arrives so slowly that it occupies memory for too long. */
  endSlow(nowMs: number): void {
    const expectedBytes = (nowMs - this.#startedMs - timeLimitMs) * slowestBytesPerMs
    if (nowMs - this.#latestMs < timeLimitMs && this.#sizeBytes >= expectedBytes) return
    this.#end(new RequestFault('invalid_json', 'The body arrived too slowly.'))
  }

  #take(chunk: Buffer): void {
    this.#latestMs = performance.now()
    this.#sizeBytes += chunk.length
    if (this.#sizeBytes > 2 * this.#limitBytes) this.#end(this.#tooLarge())
    else if (!this.#fault && !this.#isDone) this.#keep(chunk)
  }

  #keep(chunk: Buffer): void {
    if (this.#sizeBytes > this.#limitBytes) this.#fault = this.#tooLarge()
    else if (this.#sizeBytes > this.#bytes.length) this.#fault = this.#grow(chunk)
    if (this.#fault) this.#drop()
    else if (this.#bytes !== chunk) chunk.copy(this.#bytes, this.#sizeBytes - chunk.length)
  }

  /** Makes room for the chunk if the organization may hold it. The whole buffer counts, not only its filled part. */
  #grow(chunk: Buffer): Error | null {
    const isFirst = this.#sizeBytes === chunk.length
    const roomBytes = isFirst ? chunk.length : Math.min(2 * this.#sizeBytes, this.#maxBytes)
    const refusal = this.#holding.take(roomBytes - this.#bytes.length)
    if (refusal) return refusal
    const grown = isFirst ? chunk : Buffer.allocUnsafeSlow(roomBytes)
    this.#bytes.copy(grown, 0, 0, this.#sizeBytes - chunk.length)
    this.#bytes = grown
    return null
  }

  #drop(): void {
    this.#bytes = nothing
    this.#holding.release()
  }

  #end(fault: Error | null): void {
    if (this.#isDone) return
    this.#isDone = true
    const bytes = this.#bytes.subarray(0, this.#sizeBytes)
    this.#bytes = nothing
    if (fault) this.#holding.release()
    this.#finish(fault, bytes)
  }

  #tooLarge(): RequestFault {
    return new RequestFault('payload_too_large', `The request body is larger than ${this.#limitBytes} bytes.`)
  }
}

const nothing = Buffer.alloc(0)

/**
 * The bodies that are still arriving. One timer checks them all, because most arrive too fast to be worth a timer each.
 */
class Unfinished {
  readonly #bodies = new Set<IncomingBody>()
  #timer: NodeJS.Timeout | null = null

  add(body: IncomingBody): void {
    this.#bodies.add(body)
    this.#timer ??= setInterval(() => this.#check(), checkMs).unref()
  }

  delete(body: IncomingBody): void {
    this.#bodies.delete(body)
  }

  #check(): void {
    const nowMs = performance.now()
    for (const body of this.#bodies) body.endSlow(nowMs)
    if (this.#bodies.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}

/** Answers up to this size are not counted, because the number of connections is bounded. */
const uncountedAnswer = 64 * 1024

/** Counts large answers in the budget too, because they stay in memory until the client has read them. */
export function countAnswers(api: Api, budget: ByteBudget): void {
  api.addHook('onSend', ({ caller }, reply, answer: string | Partial<JsonStream> | undefined, done) => {
    const bytes = (typeof answer === 'string' ? answer.length : answer?.heldBytes) ?? 0
    const isLarge = bytes > uncountedAnswer
    const refusal = isLarge && new Holding(budget, caller.organizationId, reply.raw).take(bytes)
    if (refusal) done(refusal)
    else done()
  })
}
