// Forward-only, checksummed migrations of tables, and the functions over them, applied under an advisory lock so that nodes may start together.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Log } from '../base/log.ts'
import type { Db, Queryable } from './db.ts'
import { applyFunctions } from './functions.ts'
import { lockClasses } from './locks.ts'

const folder = new URL('../store/migrations/', import.meta.url)

interface Migration {
  version: number
  name: string
  checksum: string
  sql: string
}

/** A schema this program cannot work with; the message says what to do. */
export class MigrationError extends Error {}

/** Brings the schema up to date; returns the names of what it applied. Safe when several nodes do it at once. */
export async function migrate(db: Db, log: Log): Promise<string[]> {
  const migrations = readMigrations()
  const client = await db.dedicated()
  try {
    await client.query(`begin; set local lock_timeout = '60s'; select pg_advisory_xact_lock(${lockClasses.migration});
      create table if not exists schema_migration (version integer primary key, name text not null, checksum text not null,
        applied_at timestamptz not null default now())`)
    const { rows } = await client.query(
      'select version, name, checksum from schema_migration order by version',
    )
    checkApplied(rows, migrations)
    const pending = migrations.slice(rows.length)
    for (const { version, name, checksum, sql } of pending) {
      await client.query(sql)
      await client.query('insert into schema_migration (version, name, checksum) values ($1, $2, $3)', [
        version,
        name,
        checksum,
      ])
      log.info({ migration: name }, 'schema migrated')
    }
    const functions = await applyFunctions(client)
    if (functions.length > 0) log.info({ functions: functions.length }, 'functions of the database replaced')
    await client.query('commit')
    client.release()
    return pending.map(({ name }) => name)
  } catch (error) {
    client.release(true)
    throw error
  }
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

function checkApplied(applied: { name: string; checksum: string }[], migrations: Migration[]): void {
  for (const [index, { name, checksum }] of applied.entries()) {
    const ours = migrations[index]
    if (!ours)
      throw new MigrationError(
        `the database has migration ${name}, which this program does not know: run the newer Posthorn`,
      )
    if (ours.checksum !== checksum)
      throw new MigrationError(
        `migration ${ours.name} differs from the one that was applied to this database`,
      )
  }
}
