// Sends that are being accepted: those with the same idempotency key run one at a time.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'

const maxWaitMs = 5_000

export class RunningSends {
  readonly #clock: Clock
  readonly #running = new Map<string, Promise<unknown>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Runs `accept` once no other send with the key runs. Once one of them was accepted, all that waited run at once: they see its
   * result. After 5 s of waiting it throws `idempotency_in_progress`.
   */
  async run<Result>(key: string, accept: () => Promise<Result>): Promise<Result> {
    let hasResult = false
    let earlier = this.#running.get(key)
    const deadlineMs = earlier ? this.#clock.monotonicMs() + maxWaitMs : 0
    // Nothing may come between the last question and the entry below: of those that waited, only one goes on.
    for (; earlier && !hasResult; earlier = this.#running.get(key))
      hasResult = await this.#isAccepted(earlier, deadlineMs)
    const run = accept()
    if (hasResult) return await run
    this.#running.set(key, run)
    try {
      return await run
    } finally {
      this.#running.delete(key)
    }
  }

  /** Resolves when everything taken has been answered. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#running.values())
  }

  /** Waits for it to end, until the deadline: whether it was accepted. */
  #isAccepted(earlier: Promise<unknown>, deadlineMs: number): Promise<boolean> {
    const waitMs = deadlineMs - this.#clock.monotonicMs()
    if (waitMs <= 0) throw new ServiceError('idempotency_in_progress', undefined, 1)
    const isAccepted = earlier.then(
      () => true,
      () => false, // its refusal is its own
    )
    return Promise.race([isAccepted, sleep(waitMs, false, { ref: false })])
  }
}
