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
  readonly #known: BoundedMap<Key, { value: Value | null; untilMs: number }>
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

  /** What there is under the key, null where there is nothing. What could not be looked up is not remembered. */
  async find(key: Key): Promise<Value | null> {
    const known = this.recall(key)
    if (known !== undefined) return known
    const { clock, ms, missingMs = ms } = this.#options
    const askedMs = clock.monotonicMs()
    const value = await this.#lookups.add(key)
    const forMs = value === null ? missingMs : ms
    if (forMs > 0) this.#known.set(key, { value, untilMs: askedMs + forMs })
    return value
  }
}
