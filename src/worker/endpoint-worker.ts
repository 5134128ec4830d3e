// Calls one endpoint: how many calls at once, when to look for more, when there is nothing left to do.
import type { Clock } from '../base/clock.ts'
import { rest, Signal } from '../base/signal.ts'
import type { WebhookLease } from '../store/events/webhooks.ts'
import type { LeaseWorker } from './lease-holder.ts'
import { debounceMs } from './loop.ts'

/** What the worker is handed: the verbs of the flow, bound to this endpoint's lease. */
export interface EndpointVerbs<Call> {
  claim(limit: number, except: readonly string[]): Promise<Call[]>
  /** Resolves once the receiver has answered, or has not; `recorded` once that is known to others. */
  call(
    call: Call,
    signal: AbortSignal,
  ): Promise<{ worked: boolean; tookMs: number; recorded: Promise<boolean> }>
  nextDue(): Promise<Date | null>
}

export interface EndpointWorkerOptions<Call> {
  verbs: EndpointVerbs<Call>
  clock: Clock
  budget: CallBudget
  /** How long it is kept without work. */
  idleMs: number
  onError(error: unknown): void
}

/** Calls at once to one endpoint that answers soon: looks and results of half as many are worth their cost. */
const maxCalls = 64
/** To one that fails or lets us wait: its calls hold memory and sockets for long, and it is not helped by more. */
const maxSlowCalls = 4
const slowMs = 1_000
/** Every endpoint may have these, whatever the others of the node have taken. */
const leastCalls = 2
const maxRestMs = 1_000

/** What all endpoints of a node share: slow ones take only a part of it, so that they cannot starve the others. */
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

  /** Takes a place; the answer gives it back. */
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
 * The life of an endpoint's calls on the node that owns it, under one lease. It goes through these states:
 *
 * - *claiming*: it claims as many events as it may make calls now, and starts the calls. Where all came it claims again
 *   at once; where fewer came it first waits for `debounceMs`, so that more come together, and asks what is due next.
 * - *full*: it may make no further call, or fewer than half of its calls while others are under way. It waits for the end
 *   of one, or a wake-up, for a second at most.
 * - *idle*: what is due next lies ahead, or is busy. It waits until then, for the end of a call or a wake-up, for a second
 *   at most.
 * - *over*: it was stopped; or for `idleMs` nothing was claimed or busy, nothing falls due within a second but what it
 *   has left, and nobody has woken it. `run` resolves when the last call has ended and its result is recorded or given
 *   up.
 *
 * A call is *busy* until its result is recorded, and no claim takes it meanwhile. One whose result was not recorded is
 * *left* to the next owner of the endpoint: nobody else knows that it was made. The call that ended last sets the pace
 * of the endpoint, *prompt* or *slow*, and so how many calls it may make at once, of its own and of the `CallBudget`.
 *
 * The fan-out wakes it by way of the `LeaseHolder`, each call that ends does, and `stop` and `cut` do. A call writes nothing
 * before its result, so a crash leaves no trace of it: the next owner makes it again, under the same id.
 */
export class EndpointWorker<Call extends { id: string }> implements LeaseWorker<WebhookLease> {
  readonly #options: EndpointWorkerOptions<Call>
  readonly #abort = new AbortController()
  /** Called and not yet recorded: to be left alone by the next look. */
  readonly #busy = new Set<string>()
  /** Called in vain as far as others know: left for the endpoint's next owner. */
  readonly #left = new Set<string>()
  readonly #ending = new Set<Promise<void>>()
  #calling = 0
  #pace: 'prompt' | 'slow' = 'prompt'
  readonly #stop = new AbortController()
  /** There may be work, or room for it: somebody woke the worker, or a call has ended. */
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
      // Looks are made for several calls at once, or when nothing is under way.
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

  /** Claims about `free` calls and starts them; returns how many. Others look too, so the places are taken first. */
  async #poll(free: number): Promise<number> {
    const { budget, verbs } = this.#options
    const slots = Array.from({ length: free }, () => budget.take(this.#pace))
    try {
      const calls = await verbs.claim(free, [...this.#busy, ...this.#left])
      // Stopped meanwhile: they are left for the endpoint's next owner.
      if (this.#stop.signal.aborted) return 0
      for (const call of calls) this.#start(call, slots.pop() ?? budget.take(this.#pace))
      return calls.length
    } finally {
      for (const giveBack of slots) giveBack()
    }
  }

  /** Rests until there may be work; true when there was none for long enough, and none is near. */
  async #isDone(idleSinceMs: number): Promise<boolean> {
    const { verbs, clock, idleMs } = this.#options
    const stop = this.#stop.signal
    if (this.isWoken || stop.aborted) return false
    const dueAt = await verbs.nextDue()
    const waitMs = dueAt ? dueAt.getTime() - clock.nowMs() : Number.POSITIVE_INFINITY
    const isIdle = this.#busy.size === 0 && performance.now() - idleSinceMs >= idleMs
    if (isIdle && (waitMs > maxRestMs || this.#left.size > 0)) return !this.isWoken
    // What is due and was passed over is busy: the end of its call is waited for.
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
      this.#pace = called.worked && called.tookMs < slowMs ? 'prompt' : 'slow'
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
