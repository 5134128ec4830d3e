// Wakes waiting callers, and remembers a wake-up that comes too early.

/** How often to poll for work even without a wake-up: a wake-up from another node can be lost. */
export const unwokenPollMs = 1_000

export class Signal {
  #isWoken = false
  readonly #waiting = new Set<() => void>()

  /** Whether there was a wake-up since the last wait or `clear`. */
  get isWoken(): boolean {
    return this.#isWoken
  }

  wake(): void {
    this.#isWoken = true
    this.wakeSome(this.#waiting.size)
  }

  /** Ends the waits of up to `limit` callers, the longest first. This wake-up is not remembered. */
  wakeSome(limit: number): void {
    for (const end of [...this.#waiting].slice(0, limit)) end()
  }

  /** Forgets an earlier wake-up. */
  clear(): void {
    this.#isWoken = false
  }

  /** Waits for a wake-up, for up to `ms`, or until `stop`. Returns at once if a wake-up is remembered, and forgets it. */
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
