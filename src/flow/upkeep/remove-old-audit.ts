// Removes what the audit log has said for as long as the deployment wants it.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteAuditEntries } from '../../store/accounts/audit.ts'

/** Removes up to `limit`, the oldest first; returns whether there may be more. */
export async function removeOldAudit(
  { db, clock }: { db: Db; clock: Clock },
  keptMs: number,
  limit: number,
): Promise<boolean> {
  const before = new Date(clock.nowMs() - keptMs)
  return (await db.transaction((tx) => deleteAuditEntries(tx, before, limit))) === limit
}
