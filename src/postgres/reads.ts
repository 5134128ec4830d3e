// Limits the reads of organizations: how many run at the same time, and how long others wait.
import { ServiceError } from '../base/errors.ts'
import { ShareLimit } from '../base/share-limit.ts'

/** How long one statement of a read may take. */
export const readTimeoutMs = 5_000
/** As long as an answer may take to begin. */
const maxWaitMs = 15_000
/** Reads that wait; one organization may have a third of them. */
const maxWaiting = 3_000

/** The next search of a client that waited or read in vain costs as much again. */
const retrySeconds = 5

export class Reads {
  readonly #limit: ShareLimit

  /** `max` reads run at the same time, up to a third of them for one organization, but always one. */
  constructor(max: number) {
    this.#limit = new ShareLimit({ max, maxWaiting })
  }

  /** Runs `read` as soon as the organization has a free slot. Throws `unavailable` after 15 s without one, or if `signal` aborts. */
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
