// Deletes the positions of deleted messages after 30 days, when clients are no longer expected to continue from them.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteTombstones } from '../../store/mailbox/messages.ts'

const keptMs = 30 * 86_400_000

/** Deletes up to `limit`. Returns whether there may be more. */
export async function purgeTombstones(
  { db, clock }: { db: Db; clock: Clock },
  limit: number,
): Promise<boolean> {
  const before = new Date(clock.nowMs() - keptMs)
  return (await db.transaction((tx) => deleteTombstones(tx, before, limit))) === limit
}
