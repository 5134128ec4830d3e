// How long a request waits for what it asked of the service, whatever hangs behind it.
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { ServiceError } from '../base/errors.ts'

interface Wait {
  untilMs: number
  expire(): void
}

/** Waits that may all last equally long, so that the oldest ends first: one timer serves them all. */
export class Deadline {
  readonly #ms: number
  readonly #waits = new Set<Wait>()
  #isWatched = false

  constructor(ms: number) {
    this.#ms = ms
  }

  /**
   * Settles as `work` does, or rejects with `unavailable` once its time has passed. A database that is stopped answers
   * nothing and breaks no connection; whether the work was done is then not known, as with any lost connection.
   */
  within<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const wait = {
        untilMs: performance.now() + this.#ms,
        expire: () => reject(new ServiceError('unavailable')),
      }
      this.#waits.add(wait)
      if (!this.#isWatched) this.#watch(this.#ms)
      work.then(
        (result) => {
          this.#waits.delete(wait)
          resolve(result)
        },
        (error) => {
          this.#waits.delete(wait)
          reject(error)
        },
      )
    })
  }

  #watch(ms: number): void {
    this.#isWatched = true
    setTimeout(() => this.#look(), ms).unref()
  }

  #look(): void {
    this.#isWatched = false
    for (const wait of this.#waits) {
      const leftMs = wait.untilMs - performance.now()
      if (leftMs > 0) {
        this.#watch(leftMs)
        break
      }
      this.#waits.delete(wait)
      wait.expire()
    }
  }
}

/** For looking a caller's key up. */
export const callerDeadline = new Deadline(10_000)
/** For an operation: looking a domain's records up takes ten seconds. */
export const answerDeadline = new Deadline(15_000)

/** Answers with the stream; one that was opened too late, after the 503, is closed, for nobody would read it. */
export function sendStream(reply: FastifyReply, stream: Readable): FastifyReply {
  if (!reply.sent) return reply.send(stream)
  stream.destroy()
  return reply
}
