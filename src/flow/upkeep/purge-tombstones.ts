// Deletes the positions of deleted messages after 30 days, when clients are no longer expected to continue from them.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteTombstones } from '../../store/mailbox/messages.ts'

const keptMs = 30 * 86_400_000

/** Deletes up to `limit` from `after` on. Returns the position for the next batch, or null after the last one. */
export async function purgeTombstones(
  { db, clock }: { db: Db; clock: Clock },
  limit: number,
  after: Date | null = null,
): Promise<Date | null> {
  const before = new Date(clock.nowMs() - keptMs)
  return await db.transaction((tx) => deleteTombstones(tx, { after, before }, limit))
}
