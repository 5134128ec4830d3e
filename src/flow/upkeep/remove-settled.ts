// Removes settled submissions that are older than the deployment's retention.
import type { Clock } from '../../base/clock.ts'
import type { SubmissionId } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteUnusedRaws } from '../../store/mailbox/raws.ts'
import { findSettledBefore, removeSubmissions } from '../../store/mailbox/removal.ts'
import { deleteBlobs } from '../delete-blobs.ts'

/**
 * Removes up to `limit` after the submission `after`. Returns the position for the next batch, or null after the last one.
 * A batch that began at the oldest again would read the index entries of all rows that were removed since the last vacuum.
 */
export async function removeSettled(
  { db, clock, blobs }: { db: Db; clock: Clock; blobs: Blobs },
  retentionMs: number,
  limit: number,
  after: SubmissionId | null = null,
): Promise<SubmissionId | null> {
  const before = new Date(clock.nowMs() - retentionMs)
  const { ids, unused } = await db.transaction(async (tx) => {
    const ids = await findSettledBefore(tx, { after, before }, limit)
    return { ids, unused: await deleteUnusedRaws(tx, await removeSubmissions(tx, ids)) }
  })
  await deleteBlobs({ db, blobs }, unused)
  return ids.length === limit ? ids.at(-1)! : null
}
