// What many ask for at about the same time, made once: kept for a moment, and within bounds.

export interface RecentOptions<Value> {
  maxAgeMs: number
  weigh(value: Value): number
  maxWeight: number
}

interface Kept<Value> {
  value: Promise<Value>
  /** Infinite until it is there. */
  madeMs: number
  weight: number
}

/** The oldest goes first. What is being made is shared too; what could not be made is not kept. */
export class Recent<Value> {
  readonly #options: RecentOptions<Value>
  readonly #kept = new Map<string, Kept<Value>>()
  #weight = 0

  constructor(options: RecentOptions<Value>) {
    this.#options = options
  }

  /** The value under `key`, which is made now if nobody has asked for it lately. */
  get(key: string, make: () => Promise<Value>): Promise<Value> {
    this.trim()
    const found = this.#kept.get(key)
    if (found) return found.value
    const kept: Kept<Value> = { value: make(), madeMs: Number.POSITIVE_INFINITY, weight: 0 }
    this.#kept.set(key, kept)
    kept.value.then(
      (value) => this.#weigh(key, kept, value),
      () => this.#kept.delete(key), // whoever asked for it is told
    )
    return kept.value
  }

  /** Lets go of what is too old or too much. */
  trim(): void {
    const { maxAgeMs, maxWeight } = this.#options
    const oldestMs = performance.now() - maxAgeMs
    for (const [key, { madeMs, weight }] of this.#kept) {
      if (madeMs > oldestMs && this.#weight <= maxWeight) return
      this.#kept.delete(key)
      this.#weight -= weight
    }
  }

  #weigh(key: string, kept: Kept<Value>, value: Value): void {
    if (this.#kept.get(key) !== kept) return
    kept.madeMs = performance.now()
    kept.weight = this.#options.weigh(value)
    this.#weight += kept.weight
  }
}
