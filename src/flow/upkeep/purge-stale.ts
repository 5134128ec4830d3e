// Deletes expired rows: links, invitations, attempts, sessions, unproved addresses, digests of former keys, TLS policies.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteStale } from '../../store/people/stale-people.ts'
import { deleteVerifiers } from '../../store/secret-keys.ts'
import { deleteUnusedPolicies } from '../../store/sending/mta-sts-policies.ts'

/** One day longer than a return path is accepted. */
const verifiersMs = 31 * 86_400_000

/** The last use of a policy is noted once a day. */
const policiesMs = 2 * 86_400_000
/** A stranger can name any number of domains with a policy. */
const maxPolicies = 50_000

/** Deletes up to `limit` of each kind. Returns whether there may be more. */
export async function purgeStale({ db, clock }: { db: Db; clock: Clock }, limit: number): Promise<boolean> {
  const unused = { before: new Date(clock.nowMs() - policiesMs), max: maxPolicies, limit }
  const isMore = await deleteUnusedPolicies(db.writer, unused)
  return await db.transaction(async (tx) => {
    await deleteVerifiers(tx, new Date(clock.nowMs() - verifiersMs))
    return (await deleteStale(tx, clock.now(), limit)) || isMore
  })
}
