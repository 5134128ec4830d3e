// Wakes those who wait; a wake-up that comes too early is remembered.

/**
 * How often to poll for what other nodes commit: they wake nobody here. Measured: 1,000 live streams cost 6 statements a second
 * while nothing happens, and 1,000 requests that wait for mail one of 8 ms each time.
 */
export const othersPollMs = 200

export class Signal {
  #isWoken = false
  readonly #waiting = new Set<() => void>()

  /** There was a wake-up since the last wait or `clear`. */
  get isWoken(): boolean {
    return this.#isWoken
  }

  wake(): void {
    this.#isWoken = true
    this.wakeSome(this.#waiting.size)
  }

  /** Ends the waits of up to `limit` of those who wait now, the longest first; nothing is remembered. */
  wakeSome(limit: number): void {
    for (const end of [...this.#waiting].slice(0, limit)) end()
  }

  /** Forgets a wake-up that came before. */
  clear(): void {
    this.#isWoken = false
  }

  /** Waits for a wake-up, for `ms` at most, or until `stop`; not at all where one is remembered, which counts this once. */
  async wait(ms: number, stop: AbortSignal): Promise<void> {
    if (!this.#isWoken && !stop.aborted) await new Promise<void>((resolve) => this.#begin(ms, stop, resolve))
    this.#isWoken = false
  }

  #begin(ms: number, stop: AbortSignal, resolve: () => void): void {
    const end = () => {
      clearTimeout(timer)
      stop.removeEventListener('abort', end)
      this.#waiting.delete(end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    stop.addEventListener('abort', end)
    this.#waiting.add(end)
  }
}

/** Waits for `ms`, or until `stop`. */
export async function rest(ms: number, stop: AbortSignal): Promise<void> {
  if (ms > 0) await new Signal().wait(ms, stop)
}
