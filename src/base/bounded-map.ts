// A map that never grows past its bound: what was set longest ago goes first.

export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number

  constructor(max: number) {
    super()
    this.#max = max
  }

  override set(key: Key, value: Value): this {
    this.delete(key)
    if (this.size >= this.#max) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }
}
