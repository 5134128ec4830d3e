// Removes the words of inboxes that have not been searched for 30 days, in small steps.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import { claimIndex } from '../../store/mailbox/search.ts'
import { endSearch } from '../../store/mailbox/searched-inboxes.ts'

const unusedMs = 30 * 86_400_000
const claimMs = 250

/** Removes the words of up to `limit` messages of one such inbox. Returns whether there may be more. */
export async function endSearches({ db, clock }: { db: Db; clock: Clock }, limit: number): Promise<boolean> {
  const until = new Date(clock.nowMs() - unusedMs)
  return await db.transaction(async (tx) => {
    // Holds the indexing claim, so that the inbox is not indexed meanwhile.
    if (!(await claimIndex(tx, claimMs))) return false
    return (await endSearch(tx, until, limit)) !== null
  })
}
