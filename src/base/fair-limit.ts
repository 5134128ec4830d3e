// Limits concurrent work, in round robin: an asker with little work does not wait for all work of a busy one.

/** Runs up to `maxAtOnce` at the same time. Serves askers round robin, and each asker's work in its order. */
export class FairLimit {
  #free: number
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(maxAtOnce: number) {
    this.#free = maxAtOnce
  }

  /** Runs `work` as soon as it may begin, and returns its result. */
  async run<Result>(asker: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((begin) => this.#enqueue(asker, begin))
    try {
      return await work()
    } finally {
      this.#passOn()
    }
  }

  #enqueue(asker: string, begin: () => void): void {
    const queue = this.#waiting.get(asker)
    if (queue) queue.push(begin)
    else this.#waiting.set(asker, [begin])
  }

  #passOn(): void {
    const [next] = this.#waiting
    if (!next) return void this.#free++
    const [asker, queue] = next
    const begin = queue.shift()!
    this.#waiting.delete(asker)
    if (queue.length > 0) this.#waiting.set(asker, queue)
    begin()
  }
}
