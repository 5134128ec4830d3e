// What was looked up, known for a while: in batches, bounded, and never older than it may be.
import { Batch } from './batch.ts'
import { BoundedMap } from './bounded-map.ts'
import type { Clock } from './clock.ts'

export interface KnownForOptions<Key, Value> {
  /** What the measurements of its batches are called. */
  name: string
  clock: Clock
  /** How long something is known, from when it was asked for: it may be as old as the question, and no older. */
  ms: number
  /** How long it is known that there is nothing; `ms` where it is omitted. */
  missingMs?: number
  max: number
  /** Looks up different keys together: what there is, and nothing under the other keys. */
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

  /** What is known without asking: null where it is known that there is nothing, undefined where nothing is known. */
  recall(key: Key): Value | null | undefined {
    const known = this.#known.get(key)
    return known && this.#options.clock.monotonicMs() < known.untilMs ? known.value : undefined
  }

  /**
   * Returns what there is under the key, null if there is nothing. A caller that must not act on older knowledge names the
   * moment since which it has to have been asked for. A look-up that failed is not remembered.
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
 * Returns what `find` finds, which uses no look-ups older than the moment that it is given: at first any that is remembered.
 * If the result is a refusal, `find` runs once more with look-ups from now on, so nobody is refused for good over what was
 * true a second ago. A refusal costs at most one more question, asked together with all others of the moment.
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
