// A map bounded in entries and in bytes: the entry that was used longest ago is removed first.

export interface RecentlyUsedOptions {
  maxEntries: number
  maxBytes: number
}

export class RecentlyUsed<Value> {
  readonly #options: RecentlyUsedOptions
  /** In the order of their last use. */
  readonly #entries = new Map<string, { value: Value; sizeBytes: number }>()
  #sizeBytes = 0

  constructor(options: RecentlyUsedOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#entries.size
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  has(key: string): boolean {
    return this.#entries.has(key)
  }

  /** Returns the value and marks it as used. */
  use(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Stores the value as the last used, unless it alone is larger than `maxBytes`. */
  set(key: string, value: Value, sizeBytes: number): void {
    this.delete(key)
    const { maxEntries, maxBytes } = this.#options
    if (sizeBytes > maxBytes) return
    this.#entries.set(key, { value, sizeBytes })
    this.#sizeBytes += sizeBytes
    while (this.#entries.size > maxEntries || this.#sizeBytes > maxBytes)
      this.delete(this.#entries.keys().next().value!)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#entries.delete(key)
    this.#sizeBytes -= entry.sizeBytes
  }
}
