// Wakes the listeners of a key.

export class KeyedSignal {
  readonly #listeners = new Map<string, Set<() => void>>()

  /** Calls `wake` at each wake-up of the key, until the returned function is called. */
  listen(key: string, wake: () => void): () => void {
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(wake))
    return () => {
      listeners.delete(wake)
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key)
    }
  }

  /** Wakes all listeners of the keys, once per key. */
  wake(keys: Iterable<string>): void {
    for (const key of new Set(keys)) for (const wake of [...(this.#listeners.get(key) ?? [])]) wake()
  }
}
