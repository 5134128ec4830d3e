// Removes audit entries that are older than the deployment's retention.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteAuditEntries } from '../../store/accounts/audit.ts'

/** Removes up to `limit` entries, oldest first. Returns whether there may be more. */
export async function removeOldAudit(
  { db, clock }: { db: Db; clock: Clock },
  keptMs: number,
  limit: number,
): Promise<boolean> {
  const before = new Date(clock.nowMs() - keptMs)
  return (await db.transaction((tx) => deleteAuditEntries(tx, before, limit))) === limit
}
