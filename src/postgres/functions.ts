// Functions of the database, one per file: replaced when their text changes, and dropped one release after they are retired.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import packageJson from '../../package.json' with { type: 'json' }

const folder = new URL('../store/functions/', import.meta.url)

interface FunctionFile {
  /** Name of the file, and of the function in it. */
  name: string
  checksum: string
  sql: string
}

/**
 * Replaces the functions that changed, within the migrating transaction. Returns their names. If a function's arguments
 * change, its old form stays, because nodes of the previous release still call it. The next release drops it.
 * A program older than the last one that ran here changes nothing.
 */
export async function applyFunctions(client: pg.PoolClient): Promise<string[]> {
  // A body may name a function that is created later.
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
  // Several functions may have this name. The file made the one that this transaction wrote.
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

/** Retires functions that have no file any more. The next release drops them. */
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

/** Returns all functions with their text and its checksum, which shows whether the text has changed. */
export function readFunctions(): FunctionFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'))
  return names.sort().map((file) => {
    const sql = readFileSync(new URL(file, folder), 'utf8')
    return { name: file.slice(0, -4), checksum: createHash('sha256').update(sql).digest('hex'), sql }
  })
}

/** Compares only the numbers: a suffix such as -private-beta does not count. */
function isNewer(version: string): boolean {
  const numbersOf = (text: string) => text.split('.').map((part) => Number.parseInt(part, 10))
  const [theirs, ours] = [version, packageJson.version].map(numbersOf)
  const differing = theirs!.findIndex((part, index) => part !== ours![index])
  return differing >= 0 && theirs![differing]! > (ours![differing] ?? 0)
}
