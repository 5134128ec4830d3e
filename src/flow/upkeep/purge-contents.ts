// Deletes the contents of mail without an inbox after its retention, once all its deliveries have ended.
import type { Clock } from '../../base/clock.ts'
import type { SubmissionId } from '../../base/ids.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteSettledContents } from '../../store/domains/domain-use.ts'

/**
 * Deletes up to `limit` contents that were accepted at least `keptMs` ago, after the submission `after`. Returns the
 * position for the next batch, or null after the last one.
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
