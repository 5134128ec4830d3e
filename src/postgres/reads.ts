// Reads for organizations: how many of the pool's connections they hold at the same time, and for how long they wait.
import { ServiceError } from '../base/errors.ts'
import { ShareLimit } from '../base/share-limit.ts'

/** How long one statement of a read may take. */
export const readTimeoutMs = 5_000
/** As long as an answer may take to begin. */
const maxWaitMs = 15_000
/** Statements that wait; one organization may have a third of them. */
const maxWaiting = 3_000

/** The next search of a client that waited or read in vain costs as much again. */
const retrySeconds = 5

export class Reads {
  readonly #limit: ShareLimit

  /**
   * Reads hold up to three quarters of the pool's connections together, so that writes, RCPT, filing and delivery always find
   * one. `ShareLimit` gives one organization up to a third of these, which is a quarter of the pool.
   */
  constructor(poolSize: number) {
    this.#limit = new ShareLimit({ max: Math.max(1, Math.floor((poolSize * 3) / 4)), maxWaiting })
  }

  /** Runs `read`, one statement, as soon as the organization may. Throws `unavailable` if that takes too long, or `signal` aborts. */
  async run<Result>(
    organizationId: string,
    signal: AbortSignal | undefined,
    read: () => Promise<Result>,
  ): Promise<Result> {
    if (!(await this.#limit.enter(organizationId, maxWaitMs, signal)))
      throw new ServiceError(
        'unavailable',
        'Other reads of the organization are still under way. Try again once they have ended.',
        retrySeconds,
      )
    try {
      return await read()
    } finally {
      this.#limit.leave(organizationId)
    }
  }
}

export function tookTooLong(): ServiceError {
  return new ServiceError(
    'unavailable',
    `The read took more than ${readTimeoutMs / 1_000} s, and was ended. Ask for less, or try again.`,
    retrySeconds,
  )
}
