// The service's clock: the database's time, kept as an offset, and a monotonic clock for leases and deadlines.

export class Clock {
  /** From the monotonic clock: a change of the machine's clock must not move it, or everything that waits would end. */
  #offsetMs = performance.timeOrigin
  #movedMs = 0

  /** Returns whole milliseconds since the epoch, in the database's time. */
  nowMs(): number {
    return Math.floor(performance.now() + this.#offsetMs) + this.#movedMs
  }

  now(): Date {
    return new Date(this.nowMs())
  }

  /** Returns milliseconds that only grow. Use it only to compare two readings. */
  monotonicMs(): number {
    return performance.now() + this.#movedMs
  }

  /** Adopts the database's time: `databaseMs` was read at about `readMs` of `performance.now()`. */
  synchronize(databaseMs: number, readMs: number): void {
    this.#offsetMs = databaseMs - readMs
  }

  /** Moves both clocks forward. Tests use it, so that three days take a second. */
  advance(ms: number): void {
    this.#movedMs += ms
  }
}
