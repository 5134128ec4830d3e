// Runs one kind of job again and again: at once while there is more, when woken, and at a steady pace otherwise.
import { backoffMs } from '../base/backoff.ts'
import type { Log } from '../base/log.ts'

export interface LoopOptions {
  name: string
  /** Does some work; true when there is more to do at once. */
  run(): Promise<boolean>
  /** How long to wait for a wake-up before looking anyway. */
  intervalMs: number
  log: Log
}

const failureWaitMs = [500, 1_000, 2_000, 5_000]

/** A loop that never dies of a failed run: it logs, waits a little longer each time, and tries again. */
export class Loop {
  readonly #options: LoopOptions
  #stopping = false
  #woken = false
  #rouse: (() => void) | null = null
  #ended: Promise<void> | null = null

  constructor(options: LoopOptions) {
    this.#options = options
  }

  start(): void {
    this.#ended ??= this.#loop()
  }

  /** There is work: run now, or once more after the run that is under way. */
  wake(): void {
    this.#woken = true
    this.#rouse?.()
  }

  /** Resolves when the run under way has ended. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#rouse?.()
    await this.#ended
  }

  async #loop(): Promise<void> {
    let failures = 0
    while (!this.#stopping) {
      this.#woken = false
      let waitMs = this.#options.intervalMs
      try {
        if (await this.#options.run()) waitMs = 0
        failures = 0
      } catch (error) {
        waitMs = backoffMs(failureWaitMs, ++failures)
        this.#options.log.warn(
          { err: error, loop: this.#options.name, failures },
          'a job failed and will be tried again',
        )
      }
      if (waitMs > 0) await this.#rest(waitMs, failures > 0 ? 'failed' : 'idle')
    }
  }

  /** A wake-up ends the rest, unless the last run failed: then waiting is the point. */
  async #rest(waitMs: number, after: 'idle' | 'failed'): Promise<void> {
    if (this.#stopping || (this.#woken && after === 'idle')) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs)
      this.#rouse = () => {
        if (after === 'failed' && !this.#stopping) return
        clearTimeout(timer)
        resolve()
      }
    })
    this.#rouse = null
  }
}
