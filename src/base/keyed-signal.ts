// Wakes those who wait for something under a key; whoever waits says himself that he listens.

export class KeyedSignal {
  readonly #listeners = new Map<string, Set<() => void>>()

  /** Calls `wake` at each wake-up of the key, until the function that it returns is called. */
  listen(key: string, wake: () => void): () => void {
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(wake))
    return () => {
      listeners.delete(wake)
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key)
    }
  }

  /** Wakes all who listen for one of the keys. */
  wake(keys: Iterable<string>): void {
    for (const key of new Set(keys)) for (const wake of [...(this.#listeners.get(key) ?? [])]) wake()
  }
}
