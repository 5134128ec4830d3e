// Removes settled submissions that are older than the deployment's retention.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { findSettledBefore, removeSubmissions } from '../../store/mailbox/removal.ts'

/** Removes up to `limit`. Returns whether there may be more. */
export async function removeSettled(
  { db, clock }: { db: Db; clock: Clock },
  retentionMs: number,
  limit: number,
): Promise<boolean> {
  const before = new Date(clock.nowMs() - retentionMs)
  const removed = await db.transaction(async (tx) => {
    const ids = await findSettledBefore(tx, before, limit)
    await removeSubmissions(tx, ids)
    return ids.length
  })
  return removed === limit
}
