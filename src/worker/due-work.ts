// Polls the database once for all loops of this node, and wakes the loops whose work is due.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { type Db, isLost } from '../postgres/db.ts'
import { type DueCondition, findDue } from '../store/due.ts'
import { Loop, type LoopOptions } from './loop.ts'

export interface DueWorkOptions {
  db: Db
  clock: Clock
  log: Log
  managedDomain: string
}

/** How long due work waits at most if no commit wakes its loop. */
const pollMs = 1_600

export class DueWork {
  readonly #options: DueWorkOptions
  readonly #wakes = new Map<DueCondition, (() => void)[]>()
  readonly #polling: Loop

  constructor(options: DueWorkOptions) {
    this.#options = options
    const { log } = options
    this.#polling = new Loop({ name: 'find due work', run: () => this.#poll(), intervalMs: pollMs, log })
  }

  /** Calls `wake` at each poll that finds work due. Call it before `start`: the statement stays the same from then on. */
  watch(due: DueCondition, wake: () => void): void {
    this.#wakes.set(due, [...(this.#wakes.get(due) ?? []), wake])
  }

  /** Returns a loop without an interval that runs while its work is due. */
  createLoop(due: DueCondition, options: Omit<LoopOptions, 'intervalMs' | 'log'>): Loop {
    const loop = new Loop({ ...options, log: this.#options.log })
    this.watch(due, () => loop.wake())
    return loop
  }

  start(): void {
    this.#polling.start()
  }

  async stop(): Promise<void> {
    await this.#polling.stop()
  }

  async #poll(): Promise<false> {
    const { db, clock, managedDomain } = this.#options
    const conditions = [...this.#wakes.keys()]
    const asked = { at: clock.now(), managedDomain }
    try {
      this.#wake(conditions.length > 0 ? await findDue(db, conditions, asked) : [])
    } catch (error) {
      // A table that is locked must not stop the work on all others.
      if (!isLost(error)) this.#wake(conditions)
      throw error
    }
    return false
  }

  #wake(found: readonly DueCondition[]): void {
    for (const due of found) for (const wake of this.#wakes.get(due) ?? []) wake()
  }
}
