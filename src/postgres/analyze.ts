// Keeps the planner's statistics of new, growing tables current, sooner than autovacuum would.
import type { Db } from './db.ts'

const fewRows = 1_000
/** For larger tables autovacuum is soon enough. */
const manyRows = 200_000

const grownTables = `pg_stat_user_tables t join pg_class c on c.oid = t.relid
  where t.schemaname = current_schema() and c.reltuples < ${manyRows} and t.n_live_tup > ${fewRows}
    and t.n_mod_since_analyze > greatest(${fewRows}, c.reltuples)`
/** Holds if `analyzeGrown` finds a table. */
export const analysisDue = `exists (select from ${grownTables})`

/**
 * Analyzes tables that have more than doubled since they were last analyzed. Otherwise plans made while a table was empty
 * remain, and can pick an index that only suits an empty table. A small sample is enough.
 * Returns false: there is never more work at once.
 */
export async function analyzeGrown(db: Db): Promise<false> {
  const grown = await db.query<{ name: string }>(`select t.relname as name from ${grownTables}`)
  const client = grown.length > 0 ? await db.dedicated() : null
  try {
    for (const { name } of grown) await client?.query(`set default_statistics_target = 10; analyze "${name}"`)
  } finally {
    client?.release(true)
  }
  return false
}
