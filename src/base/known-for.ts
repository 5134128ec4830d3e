// Caches look-ups for a limited time, loads them in batches, and bounds their age and number.
import { Batch } from './batch.ts'
import { BoundedMap } from './bounded-map.ts'
import type { Clock } from './clock.ts'

export interface KnownForOptions<Key, Value> {
  /** Label of the metrics of its batches. */
  name: string
  clock: Clock
  /** How long a value is kept, counted from the start of its look-up, so that it is never older than this. */
  ms: number
  /** How long an absence is kept; `ms` if omitted. */
  missingMs?: number
  max: number
  /** Looks up different keys together. Returns the existing values; keys without a value are missing. */
  load(keys: Key[]): Promise<ReadonlyMap<Key, Value>>
}

export class KnownFor<Key, Value> {
  readonly #options: KnownForOptions<Key, Value>
  readonly #known: BoundedMap<Key, { value: Value | null; askedMs: number; untilMs: number }>
  readonly #lookups: Batch<Key, Value | null>

  constructor(options: KnownForOptions<Key, Value>) {
    const { name, max, load } = options
    this.#options = options
    this.#known = new BoundedMap(max)
    this.#lookups = new Batch<Key, Value | null>({
      name,
      flush: async (keys) => {
        const found = await load([...new Set(keys)])
        return keys.map((key) => found.get(key) ?? null)
      },
    })
  }

  /** Returns the cached value without a look-up: null for a cached absence, undefined if nothing is cached. */
  recall(key: Key): Value | null | undefined {
    const known = this.#known.get(key)
    return known && this.#options.clock.monotonicMs() < known.untilMs ? known.value : undefined
  }

  /**
   * Returns the value of the key, null if there is none. Cached values looked up before `sinceMs` are not used, for callers
   * that must not act on old values. A failed look-up is not cached.
   */
  async find(key: Key, sinceMs = Number.NEGATIVE_INFINITY): Promise<Value | null> {
    const { clock, ms, missingMs = ms } = this.#options
    const known = this.#known.get(key)
    const askedMs = clock.monotonicMs()
    if (known && askedMs < known.untilMs && known.askedMs >= sinceMs) return known.value
    const value = await this.#lookups.add(key)
    const forMs = value === null ? missingMs : ms
    if (forMs > 0) this.#known.set(key, { value, askedMs, untilMs: askedMs + forMs })
    return value
  }
}

/**
 * Returns the result of `find`, which must use no look-ups older than the moment it is given. The first call accepts any
 * cached look-up. If the result is a refusal, `find` runs once more with new look-ups, so that a stale value never causes
 * a permanent refusal. A refusal costs at most one more look-up, batched with all others of the moment.
 */
export async function recheckRefusal<Result>(
  clock: Clock,
  find: (sinceMs: number) => Promise<Result>,
  isRefusal: (result: Result) => boolean,
): Promise<Result> {
  const nowMs = clock.monotonicMs()
  const result = await find(Number.NEGATIVE_INFINITY)
  return isRefusal(result) ? await find(nowMs) : result
}
