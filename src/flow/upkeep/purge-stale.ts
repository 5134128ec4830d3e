// Deletes expired rows: links, invitations, attempts, sessions, unproved addresses, digests of former keys, TLS policies, limits of destinations.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { deleteStale } from '../../store/people/stale-people.ts'
import { deleteVerifiers } from '../../store/secret-keys.ts'
import { deleteUnusedGroups } from '../../store/sending/destination-groups.ts'
import { deleteUnusedPolicies } from '../../store/sending/mta-sts-policies.ts'

/** One day longer than a return path is accepted. */
const verifiersMs = 31 * 86_400_000

/** The last use of a policy is noted once a day. */
const policiesMs = 2 * 86_400_000
/** Learned limits are forgotten after a day, and no rule counts messages for longer than one. */
const groupsMs = 2 * 86_400_000
/** A stranger can name any number of domains with a policy. */
const maxPolicies = 50_000

/** Deletes up to `limit` of each kind. Returns whether there may be more. */
export async function purgeStale({ db, clock }: { db: Db; clock: Clock }, limit: number): Promise<boolean> {
  const unused = { before: new Date(clock.nowMs() - policiesMs), max: maxPolicies, limit }
  const isMorePolicies = await deleteUnusedPolicies(db.writer, unused)
  const isMoreGroups = await deleteUnusedGroups(db.writer, new Date(clock.nowMs() - groupsMs), limit)
  return await db.transaction(async (tx) => {
    await deleteVerifiers(tx, new Date(clock.nowMs() - verifiersMs))
    return (await deleteStale(tx, clock.now(), limit)) || isMorePolicies || isMoreGroups
  })
}
