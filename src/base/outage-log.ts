// Logs an outage of something that work needs, such as the database: one line at the beginning, one at the end.
import type { Log } from './log.ts'

export interface OutageLogOptions {
  log: Log
  /** The operators' name for the work. */
  work: string
  /** A success ends the outage only this long after the last failure, because cached work succeeds during it. Default 0. */
  quietMs?: number
}

/** An outage of one kind of work. Counts its failures from the first, and logs the count at the end. */
export class OutageLog {
  readonly #options: OutageLogOptions
  #outage: { begunMs: number; lastMs: number; failures: number } | null = null

  constructor(options: OutageLogOptions) {
    this.#options = options
  }

  /** Reports a failure. The first failure of an outage is logged, without a stack. */
  fail(error: unknown): void {
    const nowMs = performance.now()
    if (!this.#outage) {
      const { log, work } = this.#options
      log.warn({ work, reason: reasonOf(error) }, 'unavailable; further failures are counted')
      this.#outage = { begunMs: nowMs, lastMs: nowMs, failures: 0 }
    }
    this.#outage.lastMs = nowMs
    this.#outage.failures++
  }

  /** Reports a success, which ends the outage. */
  succeed(): void {
    if (!this.#outage) return
    const { log, work, quietMs = 0 } = this.#options
    const { begunMs, lastMs, failures } = this.#outage
    const nowMs = performance.now()
    if (nowMs - lastMs < quietMs) return
    this.#outage = null
    log.info({ work, failures, seconds: Math.round((nowMs - begunMs) / 1000) }, 'available again')
  }
}

/** Returns the message, code or name of the error; never empty. */
function reasonOf(error: unknown): string {
  const { message, code, name } = error as Error & { code?: string }
  return message || code || name
}
