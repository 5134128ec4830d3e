// Deletes what mail without an inbox was composed from, once its time is over and none of it waits.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteSettledContents } from '../../store/domain-use.ts'

/** Deletes up to `limit` that were accepted `keptMs` ago or earlier; returns whether there may be more. */
export async function purgeContents(
  { db, clock }: { db: Db; clock: Clock },
  keptMs: number,
  limit: number,
): Promise<boolean> {
  const before = new Date(clock.nowMs() - keptMs)
  return (await db.transaction((tx) => deleteSettledContents(tx, before, limit))) === limit
}
