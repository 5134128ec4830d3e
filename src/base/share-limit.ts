// Limits concurrent work and reserves room for new askers: an asker with much work waits for its own share.
import { mayTake } from './share.ts'

export interface ShareLimitOptions {
  /** Maximum at the same time. */
  max: number
  /** Maximum waiting for all askers together. The share of one asker is limited in the same way. */
  maxWaiting: number
}

/** An asker may have half as many as then stay free: alone a third of all. However many ask, some room stays free. */
const ratio = 0.5

/** Admits waiting askers round robin, and the work of each in its order. */
export class ShareLimit {
  readonly #options: ShareLimitOptions
  readonly #begun = new Map<string, number>()
  readonly #waiting = new Map<string, Set<() => void>>()
  #begunCount = 0
  #waitingCount = 0

  constructor(options: ShareLimitOptions) {
    this.#options = options
  }

  /** Returns whether the asker would have to wait now. */
  isUsedUp(asker: string): boolean {
    return this.#waiting.has(asker) || !this.#mayBegin(asker)
  }

  /**
   * Resolves to true once the asker may begin. The asker must then call `leave`. Resolves to false after `waitMs`, if
   * `signal` aborts first, or if too many wait already.
   */
  async enter(asker: string, waitMs: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted) return false
    if (!this.isUsedUp(asker)) {
      this.#begin(asker)
      return true
    }
    const queue = this.#waiting.get(asker) ?? new Set()
    if (!mayTake(queue.size, this.#waitingCount, this.#options.maxWaiting, ratio)) return false
    return await this.#wait(asker, queue, waitMs, signal)
  }

  leave(asker: string): void {
    const count = this.#begun.get(asker)! - 1
    this.#begunCount--
    if (count > 0) this.#begun.set(asker, count)
    else this.#begun.delete(asker)
    this.#admit()
  }

  #mayBegin(asker: string): boolean {
    return mayTake(this.#begun.get(asker) ?? 0, this.#begunCount, this.#options.max, ratio)
  }

  #begin(asker: string): void {
    this.#begun.set(asker, (this.#begun.get(asker) ?? 0) + 1)
    this.#begunCount++
  }

  async #wait(
    asker: string,
    queue: Set<() => void>,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const begin = () => resolve(true)
    queue.add(begin)
    this.#waiting.set(asker, queue)
    this.#waitingCount++
    const giveUp = () => {
      if (this.#remove(asker, begin)) resolve(false)
    }
    const timer = setTimeout(giveUp, waitMs)
    signal?.addEventListener('abort', giveUp)
    const mayBegin = await promise
    clearTimeout(timer)
    signal?.removeEventListener('abort', giveUp)
    return mayBegin
  }

  /** Returns whether it was still waiting. */
  #remove(asker: string, begin: () => void): boolean {
    const queue = this.#waiting.get(asker)
    if (!queue?.delete(begin)) return false
    this.#waitingCount--
    if (queue.size === 0) this.#waiting.delete(asker)
    return true
  }

  /** An admitted asker goes to the end of the round. */
  #admit(): void {
    for (const [asker, queue] of this.#waiting) {
      if (this.#begunCount >= this.#options.max) return
      if (!this.#mayBegin(asker)) continue
      const [begin] = queue
      this.#remove(asker, begin!)
      if (this.#waiting.delete(asker)) this.#waiting.set(asker, queue)
      this.#begin(asker)
      begin!()
    }
  }
}
