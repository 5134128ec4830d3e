// Wakes the one who waits; a wake-up that comes too early is remembered.

export class Signal {
  #isWoken = false
  #end = () => {}

  /** There was a wake-up since the last wait or `clear`. */
  get isWoken(): boolean {
    return this.#isWoken
  }

  wake(): void {
    this.#isWoken = true
    this.#end()
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
    this.#end = () => {
      clearTimeout(timer)
      stop.removeEventListener('abort', this.#end)
      resolve()
    }
    const timer = setTimeout(this.#end, ms)
    stop.addEventListener('abort', this.#end)
  }
}

/** Waits for `ms`, or until `stop`. */
export async function rest(ms: number, stop: AbortSignal): Promise<void> {
  if (ms > 0) await new Signal().wait(ms, stop)
}
