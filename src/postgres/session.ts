// The settings of each session: time limits, plans, durable commits.
import type pg from 'pg'

/** The time limit of a statement, unless a connection sets another. */
export const statementTimeoutMs = 60_000
/** Settings of each session, set after connecting: a pooler in between refuses them as startup parameters. */
const sessionSettings = {
  statement_timeout: statementTimeoutMs,
  lock_timeout: 15_000,
  // Shorter than the lock timeout, and than the 10 s limit for filing mail. A node that hangs within a transaction blocks
  // the inboxes that it has locked for this long.
  idle_in_transaction_session_timeout: 8_000,
  // Statements are short: compiling plans costs more than it saves, and a parallel plan would give a read several CPUs.
  jit: 'off',
  max_parallel_workers_per_gather: 0,
  // Every statement has an index. A plan made while a table was empty must not scan it once it is large.
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  plan_cache_mode: 'force_generic_plan',
  // A machine that lost power sends nothing: the server ends its session, with its locks, after 14 s instead of two hours.
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 3,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 14_000,
}

export interface Session {
  /** Process id of the session's backend, by `pg_backend_pid()`. The id that a pooler in between sends is another. */
  pid: number
  statementTimeoutMs: number
}

/** How long the first answer of a connection may take. */
export const firstAnswerMs = 5_000

/**
 * Makes an acknowledged commit durable on the server's disk, whatever the configuration, the role or the database sets.
 * If they also require a standby, keeps their value. As a session setting, it outlasts later changes of the configuration.
 */
const commitDurably = `set_config('synchronous_commit', case when current_setting('synchronous_commit') in ('off', 'local')
    then 'on' else current_setting('synchronous_commit') end, false)`

/** Prepares a new connection. */
export async function setUpSession(client: pg.ClientBase): Promise<Session & { isReadOnly: boolean }> {
  const text = `select pg_backend_pid() as pid, current_setting('transaction_read_only') as "readOnly", ${commitDurably}, (select count(set_config(s.key, s.value, false)) from jsonb_each_text($1) s)`
  const asked = { text, values: [JSON.stringify(sessionSettings)], query_timeout: firstAnswerMs }
  const { rows } = await client.query<{ pid: number; readOnly: string }>(asked as pg.QueryConfig)
  const { pid, readOnly } = rows[0]!
  return { pid, statementTimeoutMs, isReadOnly: readOnly === 'on' }
}
