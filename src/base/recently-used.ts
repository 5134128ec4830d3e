// A map bounded in entries, in bytes and in idle time: the entry that was used longest ago is removed first.
import type { Clock } from './clock.ts'

export interface RecentlyUsedOptions {
  maxEntries: number
  maxBytes: number
  /** `set` also removes the entries that were not used for `ms`. */
  idle?: { clock: Clock; ms: number }
}

interface Entry<Value> {
  value: Value
  sizeBytes: number
  /** 0 without a limit on idle time. */
  usedMs: number
}

export class RecentlyUsed<Value> {
  readonly #options: RecentlyUsedOptions
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry<Value>>()
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
    entry.usedMs = this.#nowMs
    return entry.value
  }

  /** Stores the value as the last used, unless it alone is larger than `maxBytes`. */
  set(key: string, value: Value, sizeBytes: number): void {
    this.delete(key)
    if (sizeBytes > this.#options.maxBytes) return
    this.#entries.set(key, { value, sizeBytes, usedMs: this.#nowMs })
    this.#sizeBytes += sizeBytes
    for (const [oldest, { usedMs }] of this.#entries) {
      if (!this.#isOver(usedMs)) break
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#entries.delete(key)
    this.#sizeBytes -= entry.sizeBytes
  }

  get #nowMs(): number {
    return this.#options.idle?.clock.monotonicMs() ?? 0
  }

  /** Whether the oldest entry, last used at `usedMs`, exceeds a bound. */
  #isOver(usedMs: number): boolean {
    const { maxEntries, maxBytes, idle } = this.#options
    const isIdle = idle !== undefined && this.#nowMs - usedMs > idle.ms
    return isIdle || this.#entries.size > maxEntries || this.#sizeBytes > maxBytes
  }
}
