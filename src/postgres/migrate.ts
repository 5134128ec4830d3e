// Applies forward-only, checksummed migrations, and functions, under an advisory lock so that nodes may start together.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import type { Log } from '../base/log.ts'
import type { Db, Queryable } from './db.ts'
import { applyFunctions } from './functions.ts'
import { isLockOf, lockClasses } from './locks.ts'

const folder = new URL('../store/migrations/', import.meta.url)

interface Migration {
  version: number
  name: string
  checksum: string
  sql: string
}

export interface AppliedMigration {
  name: string
  checksum: string
}

/** A schema that this program cannot work with. The message says what to do. */
export class MigrationError extends Error {}

/** Brings the schema up to date. Returns the names of the applied migrations. Safe if several nodes run it at once. */
export async function migrate(db: Db, log: Log): Promise<string[]> {
  const client = await db.dedicated()
  try {
    await client.query('begin')
    await lockSchema(client)
    const applied = await readApplied(client)
    const pending = listPending(applied)
    if (pending.length > 0) await refuseDuringBackup(client)
    const names = await finishMigrations(client, applied, log)
    await client.query('commit')
    client.release()
    return names
  } catch (error) {
    client.release(true)
    throw error
  }
}

/** Prevents other schema changes until the transaction ends. */
export async function lockSchema(client: pg.PoolClient): Promise<void> {
  await client.query(`set local lock_timeout = '60s'; select pg_advisory_xact_lock(${lockClasses.migration});
    create table if not exists schema_migration (version integer primary key, name text not null, checksum text not null,
      applied_at timestamptz not null default now())`)
}

/** Returns the migrations that made the schema, in the order in which they were applied. */
export async function readApplied(client: pg.ClientBase): Promise<AppliedMigration[]> {
  const { rows } = await client.query('select name, checksum from schema_migration order by version')
  return rows
}

/** Repeats the `applied` migrations in an empty database. Throws if this program does not know them all. */
export async function repeatMigrations(client: pg.PoolClient, applied: AppliedMigration[]): Promise<void> {
  listPending(applied)
  for (const migration of readMigrations().slice(0, applied.length)) await apply(client, migration)
}

/** Applies the migrations that are not in `applied`, and the functions. Returns the names of those migrations. */
export async function finishMigrations(
  client: pg.PoolClient,
  applied: AppliedMigration[],
  log: Log,
): Promise<string[]> {
  const pending = listPending(applied)
  for (const migration of pending) {
    await apply(client, migration)
    log.info({ migration: migration.name }, 'schema migrated')
  }
  const functions = await applyFunctions(client)
  if (functions.length > 0) log.info({ functions: functions.length }, 'database functions replaced')
  return pending.map(({ name }) => name)
}

/** Returns the migrations beyond `applied`. Throws a MigrationError if `applied` has an unknown or different migration. */
export function listPending(applied: AppliedMigration[]): Migration[] {
  const migrations = readMigrations()
  checkApplied(applied, migrations)
  return migrations.slice(applied.length)
}

async function apply(client: pg.PoolClient, { version, name, checksum, sql }: Migration): Promise<void> {
  await client.query(sql)
  await client.query('insert into schema_migration (version, name, checksum) values ($1, $2, $3)', [
    version,
    name,
    checksum,
  ])
}

/** A migration would wait until the backup has read all tables, and all other statements would wait for the migration. */
async function refuseDuringBackup(client: pg.PoolClient): Promise<void> {
  const { rowCount } = await client.query(`select from pg_locks l where ${isLockOf(lockClasses.backup)}`)
  if (rowCount) throw new MigrationError('a backup is running: update the schema once it has ended')
}

/** Whether any migration has been applied. */
export async function hasSchema(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ has: boolean }>(`select to_regclass('schema_migration') is not null as has`)
  return row!.has
}

function readMigrations(): Migration[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
  return names.map((name, index) => {
    const sql = readFileSync(new URL(name, folder), 'utf8')
    return { version: index + 1, name, checksum: createHash('sha256').update(sql).digest('hex'), sql }
  })
}

function checkApplied(applied: AppliedMigration[], migrations: Migration[]): void {
  for (const [index, { name, checksum }] of applied.entries()) {
    const ours = migrations[index]
    if (!ours)
      throw new MigrationError(
        `the database has migration ${name}, which this program does not know: run the newer Posthorn`,
      )
    if (ours.checksum !== checksum)
      throw new MigrationError(
        `migration ${ours.name} differs from the one that was applied to this database, which a commit before 0.1.0 made: run that commit, or start with an empty database`,
      )
  }
}
