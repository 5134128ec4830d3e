// Arranges races: waits until statements of a database wait for a lock that a test holds.
import type { Queryable } from '../../src/postgres/db.ts'
import { until } from './until.ts'

/** Resolves once `count` statements of the database wait for a lock. `saying` is part of their text. */
export async function untilLocked(db: Queryable, { count = 1, saying = '' } = {}): Promise<void> {
  await until(`${count} to wait for a lock`, async () => {
    const [row] = await db.query<{ waiting: number }>(
      `select count(*) as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%' || $1 || '%'`,
      [saying],
    )
    return row!.waiting >= count
  })
}
