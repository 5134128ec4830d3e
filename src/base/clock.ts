// The one clock: the database's time, kept by an offset, and a monotonic clock for leases and deadlines.

export class Clock {
  /** From the monotonic clock, which no step of the machine's own time moves: it would end all that waits. */
  #offsetMs = performance.timeOrigin
  #movedMs = 0

  /** Whole milliseconds since the epoch, as the database counts them. */
  nowMs(): number {
    return Math.floor(performance.now() + this.#offsetMs) + this.#movedMs
  }

  now(): Date {
    return new Date(this.nowMs())
  }

  /** Milliseconds that only ever grow; compare two readings, nothing else. */
  monotonicMs(): number {
    return performance.now() + this.#movedMs
  }

  /** Takes over the database's time: `databaseMs` was read at about `readMs` of `performance.now()`. */
  synchronize(databaseMs: number, readMs: number): void {
    this.#offsetMs = databaseMs - readMs
  }

  /** Moves both clocks forward; tests use it so that three days take a second. */
  advance(ms: number): void {
    this.#movedMs += ms
  }
}
