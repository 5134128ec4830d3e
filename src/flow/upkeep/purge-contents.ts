// Deletes the contents of mail without an inbox after its retention, once all its deliveries have ended.
import type { Clock } from '../../base/clock.ts'
import type { SubmissionId } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteSettledContents } from '../../store/domains/domain-use.ts'
import { deleteUnusedRaws } from '../../store/mailbox/raws.ts'
import { deleteBlobs } from '../delete-blobs.ts'

/**
 * Deletes up to `limit` contents that were accepted at least `keptMs` ago, after the submission `after`. Returns the
 * position for the next batch, or null after the last one.
 */
export async function purgeContents(
  { db, clock, blobs }: { db: Db; clock: Clock; blobs: Blobs },
  keptMs: number,
  limit: number,
  after: SubmissionId | null = null,
): Promise<SubmissionId | null> {
  const before = new Date(clock.nowMs() - keptMs)
  const { last, unused } = await db.transaction(async (tx) => {
    const deleted = await deleteSettledContents(tx, before, after, limit)
    return { last: deleted.last, unused: await deleteUnusedRaws(tx, deleted.rawIds) }
  })
  await deleteBlobs({ db, blobs }, unused)
  return last
}
