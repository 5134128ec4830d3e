// Runs one kind of job again and again: at once while there is more, when woken, and at a steady pace otherwise.
import { backoffMs } from '../base/backoff.ts'
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'
import { rest, Signal } from '../base/signal.ts'

export interface LoopOptions {
  name: string
  /** Does some work; true when there is more to do at once. */
  run(): Promise<boolean>
  /** Who else wakes it; they need not know whether it runs on this node. */
  signal?: Signal
  /** How long to wait for a wake-up before looking anyway. */
  intervalMs: number
  /** How long to let work gather after a run that did not fill up; 0 to run at the first wake-up. */
  collectMs?: number
  /** Others come first: while `now`, asked every `everyMs`, says so, work gathers on, for `maxMs` from when there was none. */
  yields?: { now(): boolean; everyMs: number; maxMs: number }
  log: Log
}

const failureWaitMs = [500, 1_000, 2_000, 5_000]

/**
 * A loop that never dies of a failed run. Its states, from `start` to `stop`:
 *
 * - *running*: `run` does some work. A wake-up from its beginning on is remembered until the loop is idle.
 * - *debouncing*, after a run that left nothing to do: for `collectMs`, so that the next run finds more than one thing.
 * - *yielding*, after that, and after each run that left more to do: as long as `yields.now` says that others come
 *   first, but no longer in all than `maxMs` since a run last left nothing to do; before the first such run not at all.
 * - *idle*, after a run that left nothing to do: until a wake-up, or for `intervalMs`; not at all where a wake-up is
 *   remembered. Then it runs again, as it does right after yielding where there is more.
 * - *backing off*, after a run that rejected: logged and counted, and tried again after about 0.5 s, up to 5 s when
 *   several have failed one after the other.
 * - *over*: `stop` was called. It ends every wait at once, lets a run under way end, and then resolves; a loop that is
 *   over does not start again.
 *
 * A wake-up ends only the idle state; it comes from this process, by whoever has committed work. What other nodes commit
 * is found by the interval. The loop keeps nothing, so a crash leaves what `run` has committed by then.
 */
export class Loop {
  readonly #options: LoopOptions
  readonly #signal: Signal
  readonly #stop = new AbortController()
  #remainingYieldMs = 0
  #ended: Promise<void> | null = null

  constructor(options: LoopOptions) {
    this.#options = options
    this.#signal = options.signal ?? new Signal()
  }

  start(): void {
    this.#ended ??= this.#loop(this.#stop.signal)
  }

  /** There is work: run now, or once more after the run that is under way. */
  wake(): void {
    this.#signal.wake()
  }

  /** Resolves when the run under way has ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #loop(stop: AbortSignal): Promise<void> {
    let failures = 0
    while (!stop.aborted) {
      this.#signal.clear()
      try {
        const more = await this.#options.run()
        failures = 0
        if (!more) {
          this.#remainingYieldMs = this.#options.yields?.maxMs ?? 0
          await rest(this.#options.collectMs ?? 0, stop)
        }
        await this.#giveWay(stop)
        if (!more) await this.#signal.wait(this.#options.intervalMs, stop)
      } catch (error) {
        const { log, name } = this.#options
        meters.jobFailures.inc({ name })
        log.warn({ err: error, loop: name, failures: ++failures }, 'a job failed and will be tried again')
        await rest(backoffMs(failureWaitMs, failures), stop)
      }
    }
  }

  async #giveWay(stop: AbortSignal): Promise<void> {
    const { yields } = this.#options
    while (!stop.aborted && this.#remainingYieldMs > 0 && yields?.now()) {
      const fromMs = performance.now()
      await rest(yields.everyMs, stop)
      // On a busy node a rest lasts longer than it was asked to.
      this.#remainingYieldMs -= Math.max(yields.everyMs, performance.now() - fromMs)
    }
  }
}
