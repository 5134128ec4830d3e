// Waits for the word index: transactions of other tests on the same server delay the rows that it may read.
import type { Queryable } from '../../src/postgres/db.ts'
import { until } from './until.ts'

/** A row for each outbox row that the word index has not read. */
export const unread =
  "select from outbox o join outbox_cursor c on c.name = 'search' and (o.xact, o.seq) > (c.xact, c.seq)"

/** A row for each item that the word index still has to process: outbox rows, waiting messages, and incomplete inboxes. */
export const unindexed = `${unread} and exists (select from searched_inbox)
  union all select from search_waiting union all select from searched_inbox where before_id is not null`

/** Runs `indexSome` until it returns done and this database has nothing left to index. */
export async function indexAll(db: Queryable, indexSome: () => Promise<boolean>): Promise<void> {
  await until('everything to be indexed', async () => {
    while (await indexSome());
    return (await db.query(`${unindexed} limit 1`)).length === 0
  })
}
