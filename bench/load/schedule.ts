// The times at which a load generator sends: as fast as answers arrive, or at a fixed rate regardless of answers.
import { setTimeout as pause } from 'node:timers/promises'

export interface Schedule {
  /** The load ends after `count` turns or after `durationMs`, whichever comes first. */
  count?: number
  durationMs?: number
  /**
   * Arrivals a second, evenly spread. Latency counts from the due time, so it includes the wait for a free connection.
   * Turns that are due but not started at the end are left out.
   */
  perSecond?: number
}

export interface Turn {
  number: number
  /** On the clock of `performance.now()`. */
  dueAtMs: number
}

/** Distributes the turns of one load over its connections. */
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

  /** Returns the next turn, which starts when it is due, or null if none is left. */
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

/** Computes the latency percentiles of these times. Sorts the array. */
export function latencyOf(timesMs: number[]): Latency {
  timesMs.sort((a, b) => a - b)
  const at = (share: number) => timesMs[Math.min(timesMs.length - 1, Math.floor(timesMs.length * share))] ?? 0
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** Repeats the call every `everyMs`, or as often as possible if a call takes longer, until `over` aborts. */
export async function repeat(deed: () => Promise<void>, everyMs: number, over: AbortSignal): Promise<void> {
  for (let dueAtMs = performance.now(); !over.aborted; ) {
    await deed()
    const nowMs = performance.now()
    dueAtMs = Math.max(dueAtMs + everyMs, nowMs)
    await pause(dueAtMs - nowMs, undefined, { signal: over }).catch(() => {}) // The loop is over.
  }
}
