// Waits for the index of words: transactions of other tests on the same server hold back what it may read.
import type { Queryable } from '../../src/postgres/db.ts'
import { until } from './until.ts'

/** A row for each row of the outbox that the index of words has not looked through. */
export const unread =
  "select from outbox o join outbox_cursor c on c.name = 'search' and (o.xact, o.seq) > (c.xact, c.seq)"

/** A row for each that is left for the index of words in a database: in the outbox, of what waits for its turn, and of inboxes that are not complete. */
export const unindexed = `${unread} and exists (select from searched_inbox)
  union all select from search_waiting union all select from searched_inbox where before_id is not null`

/** Runs `indexSome` until it says that it is done, and nothing in this database is left for it. */
export async function indexAll(db: Queryable, indexSome: () => Promise<boolean>): Promise<void> {
  await until('everything to be indexed', async () => {
    while (await indexSome());
    return (await db.query(`${unindexed} limit 1`)).length === 0
  })
}
