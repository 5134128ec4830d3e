// Functions of the database, one a file: applied again when their text has changed, and kept a release longer than needed.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import packageJson from '../../package.json' with { type: 'json' }

const folder = new URL('../store/functions/', import.meta.url)

interface FunctionFile {
  /** Of the file, and of the function in it. */
  name: string
  checksum: string
  sql: string
}

/**
 * Applies what has changed, within the transaction that migrates; returns the names. A function whose arguments change
 * stands beside its old form, which nodes of the release before still call: that goes with the next release but one. A
 * program that is older than the one that was here last changes nothing.
 */
export async function applyFunctions(client: pg.PoolClient): Promise<string[]> {
  // A body may name a function that comes later.
  await client.query(`set local check_function_bodies = off;
    create table if not exists schema_function (signature text primary key, name text not null, checksum text not null,
      version text not null, retired_by text)`)
  const { rows } = await client.query<{ name: string; checksum: string; version: string }>(
    'select name, checksum, version from schema_function where retired_by is null',
  )
  if (rows.some(({ version }) => isNewer(version))) return []
  const known = new Map(rows.map(({ name, checksum }) => [name, checksum]))
  const files = readFunctions()
  const changed = files.filter(({ name, checksum }) => known.get(name) !== checksum)
  for (const file of changed) await apply(client, file)
  await retire(
    client,
    files.map(({ name }) => name),
  )
  return changed.map(({ name }) => name)
}

async function apply(client: pg.PoolClient, { name, checksum, sql }: FunctionFile): Promise<void> {
  const { version } = packageJson
  await client.query(sql)
  await client.query(`update schema_function set retired_by = $2 where name = $1 and retired_by is null`, [
    name,
    version,
  ])
  // What this transaction has written of that name is the form that the file has.
  const { rowCount } = await client.query(
    `insert into schema_function (signature, name, checksum, version)
    select p.oid::regprocedure::text, $1::text, $2, $3 from pg_proc p where p.proname = $1::text
      and p.pronamespace = current_schema()::regnamespace and p.xmin = pg_current_xact_id()::xid
    on conflict (signature) do update set checksum = $2, version = $3, retired_by = null`,
    [name, checksum, version],
  )
  if (rowCount !== 1)
    throw new Error(`functions/${name}.sql makes ${rowCount} functions ${name}, and should make one`)
}

/** What no file has any more is retired by this release, and dropped by a later one. */
async function retire(client: pg.PoolClient, names: string[]): Promise<void> {
  const { version } = packageJson
  await client.query(
    'update schema_function set retired_by = $2 where name <> all($1) and retired_by is null',
    [names, version],
  )
  const { rows } = await client.query<{ signature: string }>(
    'delete from schema_function where retired_by <> $1 returning signature',
    [version],
  )
  for (const { signature } of rows) await client.query(`drop function if exists ${signature}`)
}

/** The text of all of them, for whoever wants to know whether it has changed. */
export function readFunctions(): FunctionFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'))
  return names.sort().map((file) => {
    const sql = readFileSync(new URL(file, folder), 'utf8')
    return { name: file.slice(0, -4), checksum: createHash('sha256').update(sql).digest('hex'), sql }
  })
}

/** Compares numbers alone: a suffix such as -private-beta does not count. */
function isNewer(version: string): boolean {
  const numbersOf = (text: string) => text.split('.').map((part) => Number.parseInt(part, 10))
  const [theirs, ours] = [version, packageJson.version].map(numbersOf)
  const differing = theirs!.findIndex((part, index) => part !== ours![index])
  return differing >= 0 && theirs![differing]! > (ours![differing] ?? 0)
}
