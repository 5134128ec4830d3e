// Counts the rows that PostgreSQL fetched for some work, so that a test bounds a read without a clock.
import type { Db, Tx } from '../../src/postgres/db.ts'

/** Counts rows of all tables that the work fetched in one transaction. */
export async function fetchedRows(db: Db, work: (tx: Tx) => Promise<unknown>): Promise<number> {
  return await db.transaction(async (tx) => {
    const count = async () => {
      const [row] = await tx.query<{ count: number }>(
        'select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint as count from pg_stat_xact_user_tables',
      )
      return row!.count
    }
    const before = await count()
    await work(tx)
    return (await count()) - before
  })
}
