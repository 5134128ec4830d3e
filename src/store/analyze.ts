// Keeps the planner's picture of growing tables true, sooner than autovacuum would.
import type { Queryable } from './db.ts'

const fewRows = 500

/**
 * Analyzes tables that have doubled since they were last looked at. Plans that were made while a table was empty stay
 * until then, and can pick an index that only suits an empty table. Answers false: there is never more to do at once.
 */
export async function analyzeGrown(db: Queryable): Promise<false> {
  const grown = await db.query<{ name: string }>(
    `select t.relname as name from pg_stat_user_tables t join pg_class c on c.oid = t.relid
    where t.schemaname = current_schema() and t.n_mod_since_analyze > greatest($1, c.reltuples)`,
    [fewRows],
  )
  for (const { name } of grown) await db.query(`analyze "${name}"`)
  return false
}
