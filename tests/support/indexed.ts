// Waits for the index of words: transactions of other tests on the same server hold back what it may read.
import type { Queryable } from '../../src/store/db.ts'
import { until } from './until.ts'

/** Runs `indexSome` until it says that it is done, and nothing in this database's outbox is left for it. */
export async function indexAll(db: Queryable, indexSome: () => Promise<boolean>): Promise<void> {
  await until('everything to be indexed', async () => {
    while (await indexSome());
    const left = `select from outbox o join outbox_cursor c on c.name = 'search' and (o.xact, o.seq) > (c.xact, c.seq) limit 1`
    return (await db.query(left)).length === 0
  })
}
