// Deletes expired rows: links, invitations, attempts, sessions, unproved addresses, digests of former keys.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteStale } from '../../store/people/stale-people.ts'
import { deleteVerifiers } from '../../store/secret-keys.ts'

/** One day longer than a return path is accepted. */
const verifiersMs = 31 * 86_400_000

/** Deletes up to `limit` of each kind. Returns whether there may be more. */
export async function purgeStale({ db, clock }: { db: Db; clock: Clock }, limit: number): Promise<boolean> {
  return await db.transaction(async (tx) => {
    await deleteVerifiers(tx, new Date(clock.nowMs() - verifiersMs))
    return await deleteStale(tx, clock.now(), limit)
  })
}
