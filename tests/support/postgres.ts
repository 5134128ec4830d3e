// A migrated database for each test, cloned from a template on one server that the whole run shares.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { silentLog } from '../../src/base/log.ts'
import { Db, type DbOptions } from '../../src/postgres/db.ts'
import { useEmbedded } from '../../src/postgres/embedded/use-embedded.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import type { Scope } from './until.ts'

type Connection = DbOptions['connection']

/** The advisory lock of the process that makes the template. */
const templateLock = 0x74706c

let ownFolder: string | null = null

/**
 * A fresh, migrated database, dropped when the scope ends. `POSTHORN_TEST_DATABASE_URL` names its server, with a role that
 * may create databases. Without it, the server is embedded: the run's, in the folder `POSTHORN_TEST_POSTGRES`, or this
 * file's own.
 */
export async function testDatabase(scope: Scope): Promise<Connection> {
  return await cloneDatabase(scope, makeTemplate)
}

/** The same without any table, for tests that watch the migration. */
export async function emptyDatabase(scope: Scope): Promise<Connection> {
  return await cloneDatabase(scope, async () => 'template0')
}

async function cloneDatabase(
  scope: Scope,
  findTemplate: (server: Connection) => Promise<string>,
): Promise<Connection> {
  const server = await shareServer()
  const name = `posthorn_test_${randomBytes(6).toString('hex')}`
  scope.after(async () => {
    await ask(server.connection, `drop database if exists ${name} with (force)`)
    await server.release()
  })
  const template = await findTemplate(server.connection)
  await ask(server.connection, `create database ${name} template ${template}`)
  return toDatabase(server.connection, name)
}

async function shareServer(): Promise<{ connection: Connection; release(): Promise<void> }> {
  const url = process.env['POSTHORN_TEST_DATABASE_URL']
  if (url) return { connection: { connectionString: url }, release: async () => {} }
  return useEmbedded({
    directory: process.env['POSTHORN_TEST_POSTGRES'] ?? folderOfThisFile(),
    log: silentLog,
  })
}

function folderOfThisFile(): string {
  if (ownFolder) return ownFolder
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-test-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  ownFolder = join(folder, 'postgres')
  return ownFolder
}

/** The migrated database to copy from, named after its migrations. The first caller makes it. */
async function makeTemplate(server: Connection): Promise<string> {
  const name = `posthorn_template_${digestSchema()}`
  const client = new pg.Client(server)
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [templateLock])
    const found = await client.query('select from pg_database where datname = $1', [name])
    if (found.rowCount) return name
    const draft = `${name}_new`
    await client.query(`drop database if exists ${draft}`)
    await client.query(`create database ${draft}`)
    const db = new Db({ connection: toDatabase(server, draft) })
    await migrate(db, silentLog).finally(() => db.close())
    await client.query(`alter database ${draft} rename to ${name}`)
    return name
  } finally {
    await client.end()
  }
}

function digestSchema(): string {
  const digest = createHash('sha256')
  for (const folder of ['migrations', 'functions'].map(
    (name) => new URL(`../../src/store/${name}/`, import.meta.url),
  ))
    for (const name of readdirSync(folder).sort()) digest.update(readFileSync(new URL(name, folder)))
  return digest.digest('hex').slice(0, 12)
}

function toDatabase(server: Connection, database: string): Connection {
  if (!('connectionString' in server)) return { ...server, database }
  const url = new URL(server.connectionString)
  url.pathname = `/${database}`
  return { connectionString: url.href }
}

async function ask(server: Connection, sql: string): Promise<void> {
  const client = new pg.Client(server)
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

/** For tests of plans: after an automatic ANALYZE of a table, all its statements are planned again. */
export async function turnAutovacuumOff(db: Db): Promise<void> {
  await db.query(`do $$ declare name text; begin
    for name in select tablename from pg_tables where schemaname = 'public' loop
      execute format('alter table %I set (autovacuum_enabled = false)', name);
    end loop;
  end $$`)
}
