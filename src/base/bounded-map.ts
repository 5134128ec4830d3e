// A map with a maximum size: the entry that was set longest ago is removed first.

export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number
  /**
   * An iterator: all entries are ahead of it, in order. It is reused, because a new one passes over every gap left by a
   * deleted key. Measured with 100,000 keys, all of them new: 0.4 µs instead of 60 µs.
   */
  #oldest = this.keys()
  /** How many entries were set since the iterator was created. */
  #setSince = 0

  constructor(max: number) {
    super()
    this.#max = max
  }

  override set(key: Key, value: Value): this {
    this.delete(key)
    if (this.size >= this.#max) this.delete(this.#oldest.next().value!)
    super.set(key, value)
    if (++this.#setSince > this.size) this.#renew()
    return this
  }

  /**
   * V8 keeps each table that the map outgrows, with its former values, until the iterator moves on to the next one. An
   * iterator moves only while the map is full.
   */
  #renew(): void {
    this.#oldest = this.keys()
    this.#setSince = 0
  }
}
