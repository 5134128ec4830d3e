// Running sends: those with the same idempotency key run one at a time.
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
   * Runs `accept` when no other send with the key runs. Once one of them is accepted, all waiting sends run at once and see
   * its result. Throws `idempotency_in_progress` after 5 s of waiting.
   */
  async run<Result>(key: string, accept: () => Promise<Result>): Promise<Result> {
    let hasResult = false
    let earlier = this.#running.get(key)
    const deadlineMs = earlier ? this.#clock.monotonicMs() + maxWaitMs : 0
    // There must be no await between the last check and the `set` below, so that only one waiting send continues.
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

  /** Resolves when every running send has been answered. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#running.values())
  }

  /** Waits until the send ends or the deadline passes. Returns whether it was accepted. */
  #isAccepted(earlier: Promise<unknown>, deadlineMs: number): Promise<boolean> {
    const waitMs = deadlineMs - this.#clock.monotonicMs()
    if (waitMs <= 0) throw new ServiceError('idempotency_in_progress', undefined, 1)
    const isAccepted = earlier.then(
      () => true,
      () => false, // its refusal concerns its own caller only
    )
    return Promise.race([isAccepted, sleep(waitMs, false, { ref: false })])
  }
}
