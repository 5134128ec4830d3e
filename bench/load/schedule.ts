// When a load generator sends what: as fast as it is answered, or at a fixed rate whatever the answers do.
import { setTimeout as pause } from 'node:timers/promises'

export interface Schedule {
  /** Ends after so many, or after so long. */
  count?: number
  durationMs?: number
  /**
   * Arrivals a second, evenly spread. Each is measured from when it was due: what waits for a free connection has waited
   * for its answer as well. Those that are due and not begun at the end are left out.
   */
  perSecond?: number
}

export interface Turn {
  number: number
  /** On the clock of `performance.now()`. */
  dueAtMs: number
}

/** Gives out the turns of one load to its connections. */
export class Turns {
  readonly #count: number
  readonly #deadlineMs: number
  readonly #everyMs: number
  readonly #beganMs = performance.now()
  #given = 0

  constructor({ count, durationMs, perSecond }: Schedule) {
    if (count === undefined && durationMs === undefined) throw new Error('a load without an end')
    this.#count = count ?? Number.POSITIVE_INFINITY
    this.#deadlineMs = this.#beganMs + (durationMs ?? Number.POSITIVE_INFINITY)
    this.#everyMs = perSecond === undefined ? 0 : 1000 / perSecond
  }

  /** The next turn, to be begun when it is due; null when there is none. */
  take(): Turn | null {
    const nowMs = performance.now()
    if (this.#given >= this.#count || nowMs >= this.#deadlineMs) return null
    const dueAtMs = this.#everyMs === 0 ? nowMs : this.#beganMs + this.#given * this.#everyMs
    if (dueAtMs >= this.#deadlineMs) return null
    return { number: this.#given++, dueAtMs }
  }
}

export interface Latency {
  p50: number
  p95: number
  p99: number
}

/** Of these times, which it sorts. */
export function latencyOf(timesMs: number[]): Latency {
  timesMs.sort((a, b) => a - b)
  const at = (share: number) => timesMs[Math.min(timesMs.length - 1, Math.floor(timesMs.length * share))] ?? 0
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** Does it every `everyMs`, or as often as it can be done, until `over`. */
export async function repeat(deed: () => Promise<void>, everyMs: number, over: AbortSignal): Promise<void> {
  for (let dueAtMs = performance.now(); !over.aborted; ) {
    await deed()
    const nowMs = performance.now()
    dueAtMs = Math.max(dueAtMs + everyMs, nowMs)
    await pause(dueAtMs - nowMs, undefined, { signal: over }).catch(() => {}) // It is over.
  }
}
