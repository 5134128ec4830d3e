// Forgets what was kept about people for a time: links, invitations, attempts, sessions, addresses that nobody proved.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteStale } from '../../store/stale-people.ts'

/** Forgets up to `limit` of each; returns whether there may be more. */
export async function purgeStale({ db, clock }: { db: Db; clock: Clock }, limit: number): Promise<boolean> {
  return await db.transaction((tx) => deleteStale(tx, clock.now(), limit))
}
