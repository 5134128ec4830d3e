// The deadlines of a session: for its peer's next step, for the end of a message, and for the session as a whole.
import type { Clock } from '../../base/clock.ts'
import type { ServerLimits } from './server-options.ts'

/** Deadlines on the monotonic clock. A new session waits for a command. */
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

  /** Whether the time for a message is over; false if none has begun. */
  get isMessageOver(): boolean {
    return this.#clock.monotonicMs() > this.#messageMs
  }

  get isSessionOver(): boolean {
    return this.#clock.monotonicMs() > this.#sessionMs
  }

  /** The next step may take `timeoutMs` from now. */
  allow(timeoutMs: number): void {
    this.#stepMs = this.#clock.monotonicMs() + timeoutMs
  }

  awaitCommand(): void {
    this.allow(this.#limits.commandTimeoutMs)
  }

  /** Expects more bytes of a message. The first call starts the deadline of the message. */
  awaitContent(): void {
    const { chunkTimeoutMs, messageTimeoutMs } = this.#limits
    this.allow(chunkTimeoutMs)
    this.#messageMs = Math.min(this.#messageMs, this.#clock.monotonicMs() + messageTimeoutMs)
  }

  endMessage(): void {
    this.#messageMs = Number.POSITIVE_INFINITY
  }
}
