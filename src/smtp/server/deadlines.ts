// Until when a session waits: for its peer's next step, for the end of a message, for the end of it all.
import type { Clock } from '../../base/clock.ts'
import type { ServerLimits } from './server-options.ts'

/** Deadlines on the monotonic clock. A session begins by waiting for a command. */
export class Deadlines {
  readonly #clock: Clock
  readonly #limits: ServerLimits
  readonly #sessionMs: number
  #stepMs = 0
  #messageMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock, limits: ServerLimits) {
    this.#clock = clock
    this.#limits = limits
    this.#sessionMs = clock.monotonicMs() + limits.sessionTimeoutMs
    this.awaitCommand()
  }

  get isStepOver(): boolean {
    return this.#clock.monotonicMs() > this.#stepMs
  }

  /** The time for a message; not over where none was begun. */
  get isMessageOver(): boolean {
    return this.#clock.monotonicMs() > this.#messageMs
  }

  get isSessionOver(): boolean {
    return this.#clock.monotonicMs() > this.#sessionMs
  }

  /** The next step may take so long from now on. */
  allow(timeoutMs: number): void {
    this.#stepMs = this.#clock.monotonicMs() + timeoutMs
  }

  awaitCommand(): void {
    this.allow(this.#limits.commandTimeoutMs)
  }

  /** More bytes of a message are to come; the first call of a message begins its time. */
  awaitContent(): void {
    const { chunkTimeoutMs, messageTimeoutMs } = this.#limits
    this.allow(chunkTimeoutMs)
    this.#messageMs = Math.min(this.#messageMs, this.#clock.monotonicMs() + messageTimeoutMs)
  }

  endMessage(): void {
    this.#messageMs = Number.POSITIVE_INFINITY
  }
}
