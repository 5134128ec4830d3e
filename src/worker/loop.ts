// Runs one kind of job again and again: at once while there is more, when woken, and at an interval if it has one.
import { backoffMs } from '../base/backoff.ts'
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'
import { OutageLog } from '../base/outage-log.ts'
import { rest, Signal } from '../base/signal.ts'
import { isLost } from '../postgres/db.ts'

export interface LoopOptions {
  name: string
  /** Does some work; returns true if there is more to do at once. */
  run(): Promise<boolean>
  /** A signal by which others wake the loop. They need not know whether it runs on this node. */
  signal?: Signal
  /** How long to wait for a wake-up before running anyway. Default: a loop without a wake-up does not run again. */
  intervalMs?: number
  /** How long to let work gather after a run that left nothing to do. 0: the first wake-up runs it at once. */
  collectMs?: number
  log: Log
}

/**
 * How long work gathers after a poll that found less than it wanted, because a poll costs as much as several deliveries
 * or calls. Measured with 400 mails, one every 5 ms: 109 claims, and 490 without the wait. A webhook call takes 420 us of
 * CPU time, summed over all processes, and 455 us without the wait.
 */
export const debounceMs = 20

const failureWaitMs = [500, 1_000, 2_000, 5_000]
/** The longest wait of a timer. */
const neverMs = 2_147_483_647

/**
 * A loop that never dies of a failed run. Its states, from `start` to `stop`:
 *
 * - *running*: `run` does some work. A wake-up during the run is remembered until the loop is idle.
 * - *debouncing*, after a run that left nothing to do: waits for `collectMs`, so that the next run finds more work.
 * - *idle*, after debouncing: waits for a wake-up, up to `intervalMs`, and not at all if a wake-up is remembered. Then it
 *   runs again. If a run left more to do, the next run starts at once.
 * - *backing off*, after a run that rejected. The failure is counted and logged. An outage of the database is logged
 *   only once. The next run comes after about 0.5 s, and after up to 5 s if several runs in a row failed.
 * - *over*: `stop` was called. `stop` ends every wait at once, and resolves when the run under way has ended. The loop
 *   cannot be started again.
 *
 * A wake-up ends only the idle state. It comes after a commit of new work on this node or another, or from `DueWork`,
 * which also finds work whose wake-up was lost. The loop stores nothing, so a crash leaves exactly the commits of `run`.
 */
export class Loop {
  readonly #options: LoopOptions
  readonly #signal: Signal
  readonly #stop = new AbortController()
  #ended: Promise<void> | null = null

  constructor(options: LoopOptions) {
    this.#options = options
    this.#signal = options.signal ?? new Signal()
  }

  start(): void {
    this.#ended ??= this.#loop(this.#stop.signal)
  }

  /** Starts a run now, or once more after the run under way, because there is work. */
  wake(): void {
    this.#signal.wake()
  }

  /** Resolves when the run under way has ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #loop(stop: AbortSignal): Promise<void> {
    const { log, name, run } = this.#options
    const outage = new OutageLog({ log, work: name })
    let failures = 0
    while (!stop.aborted) {
      this.#signal.clear()
      try {
        const more = await run()
        failures = 0
        outage.succeed()
        if (more) continue
        await rest(this.#options.collectMs ?? 0, stop)
        await this.#signal.wait(this.#options.intervalMs ?? neverMs, stop)
      } catch (error) {
        meters.jobFailures.inc({ name })
        failures++
        if (isLost(error)) outage.fail(error)
        else log.warn({ err: error, loop: name, failures }, 'job failed; it will be retried')
        await rest(backoffMs(failureWaitMs, failures), stop)
      }
    }
  }
}
