// Finds nodes that hang: their reports stay the same. Time is this process's monotonic clock, so no wall clock matters.
import type { NodeReport } from '../store/nodes.ts'

/**
 * A node is silent if its report was the same for this long. It is longer than `certainMs` of `Membership`, so that the
 * silent node has given up its queues and endpoints before others take them over.
 */
const silentMs = 10_500
/** The longest time between two observations. After a longer one, all other nodes may have been held up as well. */
const maxGapMs = 8_000

interface Seen {
  reported: string | null
  sinceMs: number
}

export class SilentNodes {
  #seen: ReadonlyMap<number, Seen> = new Map()
  #observedMs = Number.NEGATIVE_INFINITY

  /**
   * Takes the latest reports of all other nodes. Returns those of silent ones. A node that has not reported yet is joining,
   * and owns nothing. `nowMs` is monotonic.
   */
  observe(reports: readonly NodeReport[], nowMs: number): NodeReport[] {
    const before = nowMs - this.#observedMs > maxGapMs ? new Map<number, Seen>() : this.#seen
    this.#observedMs = nowMs
    const seenOf = ({ id, reported }: NodeReport): Seen => {
      const known = before.get(id)
      return known?.reported === reported ? known : { reported, sinceMs: nowMs }
    }
    const members = reports.filter(({ reported }) => reported !== null)
    this.#seen = new Map(members.map((report) => [report.id, seenOf(report)]))
    return members.filter(({ id }) => nowMs - this.#seen.get(id)!.sinceMs >= silentMs)
  }

  /** How long until a node is silent if it does not report before. */
  soonestMs(nowMs: number): number {
    const waitsMs = [...this.#seen.values()].map(({ sinceMs }) => sinceMs + silentMs - nowMs)
    return Math.min(...waitsMs.filter((waitMs) => waitMs > 0))
  }
}
