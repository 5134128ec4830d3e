// The one clock: the database's time, kept by an offset, and a monotonic clock for leases and deadlines.

export class Clock {
  #offsetMs = 0
  #movedMs = 0

  /** Milliseconds since the epoch, as the database counts them. */
  nowMs(): number {
    return Date.now() + this.#offsetMs + this.#movedMs
  }

  now(): Date {
    return new Date(this.nowMs())
  }

  /** Milliseconds that only ever grow; compare two readings, nothing else. */
  monotonicMs(): number {
    return performance.now() + this.#movedMs
  }

  /** Takes over the database's time: `databaseMs` was read at about the local time `localMs`. */
  synchronize(databaseMs: number, localMs: number): void {
    this.#offsetMs = databaseMs - localMs
  }

  /** Moves both clocks forward; tests use it so that three days take a second. */
  advance(ms: number): void {
    this.#movedMs += ms
  }
}
