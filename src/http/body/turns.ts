// Whose large body is read next: organizations take turns, with the first of each.
import { setImmediate as nextTurn } from 'node:timers/promises'

/** One at a time, each in a turn of the event loop of its own, for several bodies can end in the same. */
export class BodyTurns {
  /** In the order in which the organizations have their turns. */
  readonly #waiting = new Map<string, (() => Promise<void> | void)[]>()
  #isRunning = false

  /** Has the work done when its turn comes; it must not throw. */
  take(organizationId: string, work: () => Promise<void> | void): void {
    const theirs = this.#waiting.get(organizationId)
    if (theirs) theirs.push(work)
    else this.#waiting.set(organizationId, [work])
    if (!this.#isRunning) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    // Who is put back, or comes meanwhile, is gone through as well: a map is read in the order of its entries.
    for (const [organizationId, theirs] of this.#waiting) {
      await nextTurn()
      const work = theirs.shift()!
      this.#waiting.delete(organizationId)
      if (theirs.length > 0) this.#waiting.set(organizationId, theirs)
      await work()
    }
    this.#isRunning = false
  }
}
