// Counts the messages that a destination group got in a sliding period.

/** The period has this many steps. A message counts until the end of its step, so up to a 60th of the period too long. */
const steps = 60

/** Counts by step. A step is a number of milliseconds since the epoch, divided by the length of a step. */
export type StoredCounts = [step: number, count: number][]

export class SentCounts {
  readonly #stepMs: number
  #counts: StoredCounts
  #total = 0

  constructor(periodMs: number, stored: StoredCounts = []) {
    this.#stepMs = periodMs / steps
    this.#counts = stored.map(([step, count]) => [step, count])
    this.#total = stored.reduce((sum, [, count]) => sum + count, 0)
  }

  add(nowMs: number, count: number): void {
    const step = this.#stepOf(nowMs)
    const newest = this.#counts.at(-1)
    if (newest && newest[0] >= step) newest[1] += count
    else this.#counts.push([step, count])
    this.#total += count
  }

  /** Counts messages at `toMs` that were counted at `fromMs`. */
  move(fromMs: number, toMs: number, count: number): void {
    const step = this.#stepOf(fromMs)
    const counted = this.#counts.find(([one]) => one === step)
    if (!counted || step === this.#stepOf(toMs)) return
    const moved = Math.min(count, counted[1])
    counted[1] -= moved
    this.#total -= moved
    this.add(toMs, moved)
  }

  /** The number of messages within the period before now. */
  count(nowMs: number): number {
    this.#expire(nowMs)
    return this.#total
  }

  /** Returns how long to wait until at most `most` messages are within the period. 0: no wait. */
  waitMs(nowMs: number, most: number): number {
    let left = this.count(nowMs)
    for (const [step, count] of this.#counts) {
      if (left <= most) return 0
      left -= count
      if (left <= most) return Math.max(1, Math.ceil((step + steps + 1) * this.#stepMs - nowMs))
    }
    return 0
  }

  /** Multiplies the counts: other nodes that shared the limit have left, and their messages are still within the period. */
  scale(factor: number): void {
    this.#counts = this.#counts.map(([step, count]) => [step, Math.ceil(count * factor)])
    this.#total = this.#counts.reduce((sum, [, count]) => sum + count, 0)
  }

  /** The counts of this many nodes that have sent the same. */
  storedFor(nodes: number): StoredCounts {
    return this.#counts.map(([step, count]) => [step, count * nodes])
  }

  #expire(nowMs: number): void {
    const oldest = this.#stepOf(nowMs) - steps
    while (this.#counts.length > 0 && this.#counts[0]![0] < oldest) this.#total -= this.#counts.shift()![1]
  }

  #stepOf(nowMs: number): number {
    return Math.floor(nowMs / this.#stepMs)
  }
}
