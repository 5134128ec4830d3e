// Folds the counts of commits into roll-ups, and deletes roll-ups older than any window.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteRollUps, foldDeltas, metricsDue } from '../../store/events/metrics.ts'

/** Few enough to fold within a statement's time limit even if each counts ten thousand destinations. */
const deltas = 100
/** Destinations that an hour or a day counts separately from the total. */
const maxDestinations = 40
const pruned = 5_000
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** Slightly longer than the longest window, 720 hours, plus the day in which it begins. */
const keptMs = { second: 2 * minuteMs, hour: 32 * dayMs, day: 32 * dayMs } as const

/** Holds if `foldMetrics` can do something. */
export const foldingDue = metricsDue(keptMs)

/** Returns whether more is due now. */
export async function foldMetrics({ db, clock }: { db: Db; clock: Clock }): Promise<boolean> {
  const folded = await foldDeltas(db.writer, { wanted: deltas, maxDestinations })
  let isMore = folded === deltas
  for (const grain of ['second', 'hour', 'day'] as const) {
    const until = new Date(clock.nowMs() - keptMs[grain])
    isMore = (await deleteRollUps(db.writer, grain, until, pruned)) === pruned || isMore
  }
  return isMore
}
