// Removes settled submissions that are older than the deployment's retention.
import type { Clock } from '../../base/clock.ts'
import type { SubmissionId } from '../../base/ids.ts'
import type { Db } from '../../postgres/db.ts'
import { findSettledBefore, removeSubmissions } from '../../store/mailbox/removal.ts'

/**
 * Removes up to `limit` after the submission `after`. Returns the position for the next batch, or null after the last one.
 * A batch that began at the oldest again would read the index entries of all rows that were removed since the last vacuum.
 */
export async function removeSettled(
  { db, clock }: { db: Db; clock: Clock },
  retentionMs: number,
  limit: number,
  after: SubmissionId | null = null,
): Promise<SubmissionId | null> {
  const before = new Date(clock.nowMs() - retentionMs)
  return await db.transaction(async (tx) => {
    const ids = await findSettledBefore(tx, { after, before }, limit)
    await removeSubmissions(tx, ids)
    return ids.length === limit ? ids.at(-1)! : null
  })
}
