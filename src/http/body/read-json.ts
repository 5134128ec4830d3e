// Reads a request's body: within what its operation takes and what its organization may hold, and not for ever.

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
/** Enough for every operation that does not say otherwise. */
const smallBytes = 64 * 1024
/** Larger bodies are read beside the main thread, which reading one of this size stops for 3 to 8 ms. */
const maxAtOnce = 256 * 1024
/** How long a body may stall; and how much of it must have come, for each millisecond after the first of these. */
const timeLimitMs = 10_000
const slowestBytesPerMs = 16
const checkMs = 1_000

/** The largest body of a caller: room for base64 and escapes around its message content, so that 413 names the content. */
export function bodyLimitBytes(messageContentBytes: number): number {
  return Math.ceil(messageContentBytes * 1.5) + mebibyte
}

type Done = (fault: Error | null, body?: unknown) => void

/**
 * Takes the JSON body of each operation that has one, from callers who are known by then. Faults are `invalid_json`,
 * `invalid_request`, `payload_too_large`, and those of what is held in `budget`.
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
        throw new RequestFault('invalid_json', 'The body must not be compressed.')
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

/** Whose share a body is held of: the organization's, of who signs in the person's, of who has not yet their address's. */
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

/** Reads the larger bodies in turns by organization: in the main thread, the largest beside it. */
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
    // What waits for its turn is not counted any more once its client has gone.
    holding.onOver(take)
    const work = () => {
      const waited = holding.isOver ? null : take()
      if (!waited) done(endedEarly())
      else if (isLarge) return this.#readLarge(request, waited, done)
      else parseInto(done, waited)
    }
    const limit = isLarge ? this.#largeBodies : this.#here
    // In a turn of the event loop of its own, for several bodies can end in the same.
    void limit.run(caller.organizationId, () => nextTick().then(work))
  }

  /** A body of this size has come in several chunks, so that its memory is its own. */
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
  return new RequestFault('invalid_json', 'The body ended too early.')
}

/** A body that is not JSON: refused where one is expected, left alone elsewhere. */
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
 * A body on its way in. One that is refused is read to its end, but not kept, as long again as the limit: an answer sent
 * before would be lost to most clients, who read only once they have written.
 */
class IncomingBody {
  readonly #limitBytes: number
  /** The limit, or what was announced where that is less. */
  #maxBytes: number
  readonly #holding: Holding
  readonly #finish: (fault: Error | null, bytes: Buffer) => void
  readonly #startedMs = performance.now()
  #latestMs = this.#startedMs
  #sizeBytes = 0
  /** What has come, in a buffer that doubles: a chunk of one byte would cost a hundred by itself. */
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
    // The caller went away; nobody reads this answer.
    payload.on('error', () => this.#end(endedEarly()))
  }

  /** Ends it where it has stalled, or comes so slowly that its sender holds its memory for nothing. */
  endSlow(nowMs: number): void {
    const expectedBytes = (nowMs - this.#startedMs - timeLimitMs) * slowestBytesPerMs
    if (nowMs - this.#latestMs < timeLimitMs && this.#sizeBytes >= expectedBytes) return
    this.#end(new RequestFault('invalid_json', 'The body came too slowly.'))
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

  /** Room for the chunk, where the organization may hold so much: what counts is the buffer, not what is in it yet. */
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

/** The bodies that have not ended, looked at together: most end before any timer of their own would have been set. */
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

/** An answer up to this size is not counted: there are only so many connections. */
const uncountedAnswer = 64 * 1024

/** Counts large answers as well: they are held for as long as their reader takes. */
export function countAnswers(api: Api, budget: ByteBudget): void {
  api.addHook('onSend', ({ caller }, reply, answer: string | Partial<JsonStream> | undefined, done) => {
    const bytes = (typeof answer === 'string' ? answer.length : answer?.heldBytes) ?? 0
    const isLarge = bytes > uncountedAnswer
    const refusal = isLarge && new Holding(budget, caller.organizationId, reply.raw).take(bytes)
    if (refusal) done(refusal)
    else done()
  })
}
