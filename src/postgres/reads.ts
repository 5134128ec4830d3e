// Limits the reads of organizations: how many run at the same time, and how long others wait.
import { ServiceError } from '../base/errors.ts'
import { ShareLimit } from '../base/share-limit.ts'

/** Time limit for one statement of a read. */
export const readTimeoutMs = 5_000
/** How long a read may wait for a slot. */
const maxWaitMs = 15_000
/** Maximum number of waiting reads. One organization may have a third of them. */
const maxWaiting = 3_000

/** The client's pause after a read that got no slot or took too long, because a repeated read costs as much again. */
const retrySeconds = 5

export class Reads {
  readonly #limit: ShareLimit

  /** `max` reads run at the same time, up to a third of them for one organization, but always one. */
  constructor(max: number) {
    this.#limit = new ShareLimit({ max, maxWaiting })
  }

  /** Runs `read` once the organization has a slot. Throws `unavailable` after 15 s without a slot, or if `signal` aborts. */
  async run<Result>(
    organizationId: string,
    signal: AbortSignal | undefined,
    read: () => Promise<Result>,
  ): Promise<Result> {
    if (!(await this.#limit.enter(organizationId, maxWaitMs, signal)))
      throw new ServiceError(
        'unavailable',
        'Other reads of the organization are still running. Try again when they are done.',
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
    `The read took more than ${readTimeoutMs / 1_000} s and was stopped. Request less data, or try again.`,
    retrySeconds,
  )
}
