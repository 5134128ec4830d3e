// Deletes what mail without an inbox was composed from, once its time is over and none of it waits.
import type { Clock } from '../../base/clock.ts'
import type { SubmissionId } from '../../base/ids.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteSettledContents } from '../../store/domains/domain-use.ts'

/**
 * Deletes up to `limit` that were accepted `keptMs` ago or earlier, after the submission `after`; returns where the next batch
 * goes on, null if this was the last one.
 */
export async function purgeContents(
  { db, clock }: { db: Db; clock: Clock },
  keptMs: number,
  limit: number,
  after: SubmissionId | null = null,
): Promise<SubmissionId | null> {
  const before = new Date(clock.nowMs() - keptMs)
  return await db.transaction((tx) => deleteSettledContents(tx, before, after, limit))
}
