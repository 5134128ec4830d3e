// Checks a PostgreSQL before a node starts on it: it must offer sessions, writes, and durable commits.
import type pg from 'pg'
import { StartRefused } from '../base/errors.ts'
import { type Db, isReadOnly, type Queryable } from './db.ts'

/** Refuses a server, or a pooler before it, that the service cannot rely on. The message says what to change. */
export async function requireUsable(db: Db): Promise<void> {
  // First: with a pooler that changes sessions, the other checks' prepared statements would fail with a less clear message.
  await requireSessions(db)
  await requireWrites(db)
  await requireDurable(db)
}

const sessionRounds = 3

/**
 * Refuses a pooler that gives each transaction another session: locks, limits and prepared statements belong to a session.
 * While one connection is idle, a second opens a transaction. Such a pooler gives the idle connection's session to it.
 */
async function requireSessions(db: Db): Promise<void> {
  const [one, other] = [await db.dedicated(), await db.dedicated()]
  try {
    for (let round = 0; round < sessionRounds; round++) {
      const before = await readBackend(one)
      await other.query('begin')
      // With only one session behind the pooler, a read of the first connection would wait for the second. `&&` skips it.
      const isSame = (await readBackend(other)) !== before && (await readBackend(one)) === before
      await other.query('commit')
      if (!isSame) throw noSessions
    }
  } finally {
    one.release(true)
    other.release(true)
  }
}

const noSessions = new StartRefused(
  'database',
  'the pooler at POSTHORN_DATABASE_URL gives each transaction another session',
  'set pool_mode = session in pgbouncer for this database, or connect to PostgreSQL directly',
)

async function readBackend(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query('select pg_backend_pid() as pid')
  return rows[0].pid
}

/** Refuses a standby, and a server whose transactions are read-only. */
async function requireWrites(db: Queryable): Promise<void> {
  if (!(await isReadOnly(db))) return
  const [row] = await db.query<{ isStandby: boolean }>('select pg_is_in_recovery() as "isStandby"')
  throw row!.isStandby
    ? new StartRefused(
        'database',
        'the PostgreSQL of POSTHORN_DATABASE_URL is a standby (read-only)',
        'use the primary, or an address that follows it',
      )
    : new StartRefused(
        'database',
        'the PostgreSQL of POSTHORN_DATABASE_URL is read-only',
        'turn default_transaction_read_only off for this role and database',
      )
}

/** Refuses a server that may lose a commit it has confirmed. There a 202 or a 250 would be a lie. */
export async function requireDurable(db: Queryable): Promise<void> {
  const off = await db.query<{ name: string }>(
    `select name from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off' order by name`,
  )
  if (off.length === 0) return
  const all = (value: string) => off.map(({ name }) => `${name}=${value}`).join(' and ')
  throw new StartRefused(
    'database',
    `the PostgreSQL of POSTHORN_DATABASE_URL runs with ${all('off')}, so a crash can lose mail that was acknowledged`,
    `set ${all('on')} in its postgresql.conf and reload it`,
  )
}
