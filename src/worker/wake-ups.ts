// Wakes several who rest; each says up to which wake-up it has polled, so that none is missed between poll and rest.

export class WakeUps {
  readonly #resting = new Set<() => void>()
  #count = 0

  /** How many there have been. */
  get count(): number {
    return this.#count
  }

  /** Wakes all who rest, and who will rest with an earlier count. */
  wake(): void {
    this.#count++
    this.wakeSome(this.#resting.size)
  }

  /** Wakes up to `limit` of those who rest now, the longest first. */
  wakeSome(limit: number): void {
    for (const wake of [...this.#resting].slice(0, limit)) wake()
  }

  /** Rests for `ms` at most, or until woken; not at all where there was a wake-up since the count was `polled`. */
  async rest(ms: number, polled: number): Promise<void> {
    if (this.#count !== polled) return
    await new Promise<void>((resolve) => {
      const resting = this.#resting
      const timer = setTimeout(wake, ms)
      function wake() {
        clearTimeout(timer)
        resting.delete(wake)
        resolve()
      }
      resting.add(wake)
    })
  }
}
