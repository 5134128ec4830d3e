// Log lines about work that fails while something it needs is out of reach, as the database: one at the beginning, one at the end.
import type { Log } from './log.ts'

export interface OutageLogOptions {
  log: Log
  /** The name that operators know the work by. */
  work: string
  /** A success ends the outage only if the last failure was that long ago: what is remembered succeeds meanwhile. 0 unless given. */
  quietMs?: number
}

/** An outage of one kind of work: its failures are counted from the first one on, and the count is logged at its end. */
export class OutageLog {
  readonly #options: OutageLogOptions
  #outage: { begunMs: number; lastMs: number; failures: number } | null = null

  constructor(options: OutageLogOptions) {
    this.#options = options
  }

  /** The work failed. The first failure of an outage is logged, without a stack. */
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

  /** The work succeeded: what it needs is there again. */
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

/** Never empty. */
function reasonOf(error: unknown): string {
  const { message, code, name } = error as Error & { code?: string }
  return message || code || name
}
