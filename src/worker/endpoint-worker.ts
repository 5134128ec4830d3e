// Calls one endpoint: how many calls at once, when to claim more, and when to end.
import type { Clock } from '../base/clock.ts'
import { rest, Signal } from '../base/signal.ts'
import type { WebhookLease } from '../store/events/webhooks.ts'
import type { LeaseWorker } from './lease-holder.ts'
import { debounceMs } from './loop.ts'

/** The operations on one endpoint, bound to its lease. */
export interface EndpointVerbs<Call> {
  claim(limit: number, except: readonly string[]): Promise<Call[]>
  /** Resolves when the call has ended, answered or not. `recorded` resolves to whether the result was committed. */
  call(
    call: Call,
    signal: AbortSignal,
  ): Promise<{ hasWorked: boolean; tookMs: number; recorded: Promise<boolean> }>
  nextDue(): Promise<Date | null>
}

export interface EndpointWorkerOptions<Call> {
  verbs: EndpointVerbs<Call>
  clock: Clock
  budget: CallBudget
  /** How long the worker lives without work. */
  idleMs: number
  onError(error: unknown): void
}

/**
 * Calls at once to an endpoint that answers fast. The next claim waits until half of them have ended, so that a claim, and
 * a commit of results, covers enough calls to be worth its cost.
 */
const maxCalls = 64
/** Calls at once to a slow or failing endpoint. Each holds memory and a socket for long, and more would be no faster. */
const maxSlowCalls = 4
const slowMs = 1_000
/** Every endpoint may make these calls, even if the other endpoints have used up the node's budget. */
const leastCalls = 2
const maxRestMs = 1_000

/** The calls that all endpoints of a node share. Slow endpoints get only a part, so that they cannot starve the others. */
export class CallBudget {
  #calls = 0
  #slowCalls = 0
  readonly #max: { calls: number; slowCalls: number }

  constructor(max: { calls: number; slowCalls: number }) {
    this.#max = max
  }

  leftFor(pace: 'prompt' | 'slow'): number {
    const left = this.#max.calls - this.#calls
    return pace === 'prompt' ? left : Math.min(left, this.#max.slowCalls - this.#slowCalls)
  }

  /** Takes one call from the budget; the returned function gives it back. */
  take(pace: 'prompt' | 'slow'): () => void {
    this.#calls++
    if (pace === 'slow') this.#slowCalls++
    return () => {
      this.#calls--
      if (pace === 'slow') this.#slowCalls--
    }
  }
}

/**
 * Makes the calls of one endpoint on the node that owns it, under one lease. A call is *busy* until its result is
 * recorded, and no claim takes a busy call. A call whose result could not be recorded is *left* to the endpoint's next
 * owner, because only this worker knows that it was made. The worker goes through these states:
 *
 * - *claiming*: claims as many calls as it may make now, and starts them. If it got that many, it claims again at once.
 *   Otherwise it waits for `debounceMs`, so that more fall due together, and asks when the next call is due.
 * - *full*: there is room for no further call; or calls are under way, and there is room for fewer than half of the
 *   maximum. Waits up to a second for the end of a call, or a wake-up.
 * - *idle*: the next call is due later, or is busy. Waits up to a second for its due time, the end of a call or a wake-up.
 * - *over*: the worker was stopped. Or nothing was claimed or busy for `idleMs`, no wake-up came, and nothing falls due
 *   within a second except calls that are left. `run` resolves when the last call has ended and its result is recorded or
 *   given up.
 *
 * The call that ended last sets the endpoint's pace, *prompt* or *slow*. The pace decides how many calls the endpoint may
 * make at once, and which part of the `CallBudget` they use.
 *
 * The fan-out (through the `LeaseHolder`), the end of each call, `stop` and `cut` wake the worker. A call writes nothing
 * before its result, so a crash leaves no trace of it: the next owner makes it again, under the same id.
 */
export class EndpointWorker<Call extends { id: string }> implements LeaseWorker<WebhookLease> {
  readonly #options: EndpointWorkerOptions<Call>
  readonly #abort = new AbortController()
  /** Ids of calls whose result is not recorded yet. The next claim skips them. */
  readonly #busy = new Set<string>()
  /** Ids of calls whose result could not be recorded. The endpoint's next owner retries them. */
  readonly #left = new Set<string>()
  readonly #ending = new Set<Promise<void>>()
  #calling = 0
  #pace: 'prompt' | 'slow' = 'prompt'
  readonly #stop = new AbortController()
  /** Woken when there may be work, or room for it: by `wake`, and by the end of a call. */
  readonly #signal = new Signal()

  constructor(options: EndpointWorkerOptions<Call>) {
    this.#options = options
  }

  get isWoken(): boolean {
    return this.#signal.isWoken
  }

  wake(): void {
    this.#signal.wake()
  }

  stop(): void {
    this.#stop.abort()
  }

  cut(): void {
    this.stop()
    this.#abort.abort()
  }

  async run(): Promise<void> {
    try {
      await this.#work()
    } finally {
      while (this.#ending.size > 0) await Promise.all(this.#ending)
    }
  }

  async #work(): Promise<void> {
    let idleSinceMs = performance.now()
    const stop = this.#stop.signal
    while (!stop.aborted) {
      const free = this.#free()
      // Claims are made for several calls at once, or when no call is under way.
      if (free === 0 || (free < this.#max() / 2 && this.#calling > 0)) {
        await this.#signal.wait(maxRestMs, stop)
        continue
      }
      this.#signal.clear()
      const claimed = await this.#poll(free)
      if (claimed > 0 || this.#busy.size > 0) idleSinceMs = performance.now()
      if (claimed >= free) continue
      await rest(debounceMs, stop)
      if (await this.#isDone(idleSinceMs)) return
    }
  }

  /**
   * Claims about `free` calls and starts them; returns how many. Takes the budget first, because other workers claim
   * too.
   */
  async #poll(free: number): Promise<number> {
    const { budget, verbs } = this.#options
    const slots = Array.from({ length: free }, () => budget.take(this.#pace))
    try {
      const calls = await verbs.claim(free, [...this.#busy, ...this.#left])
      // If the worker was stopped during the claim, the endpoint's next owner makes these calls.
      if (this.#stop.signal.aborted) return 0
      for (const call of calls) this.#start(call, slots.pop() ?? budget.take(this.#pace))
      return calls.length
    } finally {
      for (const giveBack of slots) giveBack()
    }
  }

  /** Waits until there may be work. Returns true if there was none for `idleMs`, and none is due soon. */
  async #isDone(idleSinceMs: number): Promise<boolean> {
    const { verbs, clock, idleMs } = this.#options
    const stop = this.#stop.signal
    if (this.isWoken || stop.aborted) return false
    const dueAt = await verbs.nextDue()
    const waitMs = dueAt ? dueAt.getTime() - clock.nowMs() : Number.POSITIVE_INFINITY
    const isIdle = this.#busy.size === 0 && performance.now() - idleSinceMs >= idleMs
    if (isIdle && (waitMs > maxRestMs || this.#left.size > 0)) return !this.isWoken
    // Due events that the claim skipped are busy, so this waits for the end of a call.
    await this.#signal.wait(waitMs > 0 ? Math.min(waitMs, maxRestMs) : maxRestMs, stop)
    return false
  }

  #max(): number {
    return this.#pace === 'slow' ? maxSlowCalls : maxCalls
  }

  #free(): number {
    const left = Math.max(this.#options.budget.leftFor(this.#pace), leastCalls - this.#calling)
    return Math.max(0, Math.min(this.#max() - this.#calling, left))
  }

  #start(call: Call, giveBack: () => void): void {
    this.#busy.add(call.id)
    this.#calling++
    const ended = this.#call(call, giveBack).finally(() => {
      this.#ending.delete(ended)
      this.#signal.wake()
    })
    this.#ending.add(ended)
  }

  async #call(call: Call, giveBack: () => void): Promise<void> {
    const { verbs, onError } = this.#options
    let recorded = Promise.resolve(false)
    try {
      const called = await verbs.call(call, this.#abort.signal)
      this.#pace = called.hasWorked && called.tookMs < slowMs ? 'prompt' : 'slow'
      recorded = called.recorded
    } catch (error) {
      onError(error)
    } finally {
      giveBack()
      this.#calling--
      this.#signal.wake()
    }
    if (!(await recorded)) this.#left.add(call.id)
    this.#busy.delete(call.id)
  }
}
