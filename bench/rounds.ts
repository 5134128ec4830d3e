// Interleaved rounds (A B C A B C …) and the figures computed from them: minimum, median, maximum, pairwise ratios.

/** Named figures of one measurement, such as `accepted/s`. */
export type Sample = Record<string, number>

export interface Contender {
  name: string
  /** Loads this contender once and waits until it is idle, so that its work does not run during the next turn. */
  measure(): Promise<Sample>
}

/** The results of a contender in the rounds that count. `absence` says why it did not take part or did not finish. */
export interface Outcome {
  name: string
  samples: Sample[]
  absence?: string
}

export interface Spread {
  min: number
  median: number
  max: number
}

/** Runs every contender `rounds` times, round robin, after a discarded round. A failure ends only its contender. */
export async function interleave(contenders: Contender[], rounds: number): Promise<Outcome[]> {
  const entries = contenders.map((contender) => ({ contender, outcome: emptyOutcome(contender.name) }))
  for (let round = 0; round <= rounds; round++) {
    for (const { contender, outcome } of entries) {
      if (outcome.absence) continue
      try {
        const sample = await contender.measure()
        if (round > 0) outcome.samples.push(sample)
      } catch (error) {
        outcome.absence = `failed: ${error instanceof Error ? error.message : String(error)}`
      }
    }
  }
  return entries.map(({ outcome }) => outcome)
}

/** Returns minimum, median and maximum, or null for no values. */
export function spread(values: number[]): Spread | null {
  if (values.length === 0) return null
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const median = sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  return { min: sorted[0]!, median, max: sorted.at(-1)! }
}

/** Returns the median over the rounds of `first` divided by `other`, or null if no round has both. */
export function pairwiseRatio(first: Outcome, other: Outcome, figure: string): number | null {
  const ratios: number[] = []
  for (const [round, sample] of first.samples.entries()) {
    const above = sample[figure]
    const below = other.samples[round]?.[figure]
    if (above !== undefined && below) ratios.push(above / below)
  }
  return spread(ratios)?.median ?? null
}

/**
 * The number of messages per measurement. The discarded round takes `first`. Later rounds all take the number that
 * lasts about `targetMs` at the rate of the discarded round.
 */
export class LoadSize {
  readonly #targetMs: number
  readonly #max: number
  #count: number
  #settled = false

  constructor(options: { first: number; targetMs: number; max: number }) {
    this.#count = options.first
    this.#targetMs = options.targetMs
    this.#max = options.max
  }

  get count(): number {
    return this.#count
  }

  observe(elapsedMs: number): void {
    if (this.#settled) return
    this.#settled = true
    const wanted = Math.round((this.#count * this.#targetMs) / Math.max(elapsedMs, 1))
    this.#count = Math.min(Math.max(wanted, 50), this.#max)
  }
}

function emptyOutcome(name: string): Outcome {
  return { name, samples: [] }
}
