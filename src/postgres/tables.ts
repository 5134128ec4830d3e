// Reads the tables for a copy of the database: writable columns, sequences, foreign keys.
import type pg from 'pg'
import type { Queryable } from './db.ts'

export interface CopiedTable {
  name: string
  /** Columns that are stored as given. Generated columns are left out. */
  columns: string[]
}

export interface CopiedSequence {
  name: string
  lastValue: number
  /** Whether `lastValue` was already used. */
  isCalled: boolean
}

const ours = 'c.relnamespace = current_schema()::regnamespace'

/** Returns every ordinary table, by name. */
export async function listTables(db: Queryable): Promise<CopiedTable[]> {
  return await db.query<CopiedTable>(
    `select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      and a.attgenerated = ''
    where ${ours} and c.relkind = 'r' group by c.relname order by c.relname`,
  )
}

/** Returns every sequence, by name, with its current value. Sequences are not transactional. */
export async function listSequences(db: Queryable): Promise<CopiedSequence[]> {
  return await db.query<CopiedSequence>(
    `select s.sequencename::text as name, coalesce(s.last_value, s.start_value)::int8 as "lastValue",
      s.last_value is not null as "isCalled"
    from pg_sequences s where s.schemaname = current_schema() order by s.sequencename`,
  )
}

export async function setSequence(
  db: Queryable,
  { name, lastValue, isCalled }: CopiedSequence,
): Promise<void> {
  await db.query('select setval($1::regclass, $2, $3)', [quoted(name), lastValue, isCalled])
}

/** Drops the foreign keys, so that tables can be filled in any order. Running the returned SQL restores and checks them. */
export async function dropForeignKeys(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string; table: string; definition: string }>(
    `select k.conname as name, c.relname as table, pg_get_constraintdef(k.oid) as definition
    from pg_constraint k join pg_class c on c.oid = k.conrelid where ${ours} and k.contype = 'f' order by 2, 1`,
  )
  for (const { name, table } of rows)
    await client.query(`alter table ${quoted(table)} drop constraint ${quoted(name)}`)
  return rows.map(
    ({ name, table, definition }) =>
      `alter table ${quoted(table)} add constraint ${quoted(name)} ${definition}`,
  )
}

/** Returns whether the schema is empty: no object of ours or of anyone else. */
export async function isEmptyDatabase(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ isEmpty: boolean }>(
    `select not exists (select from pg_class c where ${ours} and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and c.relname <> 'schema_migration') as "isEmpty"`,
  )
  return row!.isEmpty
}

/** Deletes the rows that migrations insert. The backup's rows replace them. */
export async function truncateTables(db: Queryable, tables: CopiedTable[]): Promise<void> {
  await db.query(`truncate ${tables.map(({ name }) => quoted(name)).join(', ')}`)
}

export function lockText(tables: CopiedTable[]): string {
  return `lock table ${tables.map(({ name }) => quoted(name)).join(', ')} in access share mode`
}

export function copyText({ name, columns }: CopiedTable, direction: 'to stdout' | 'from stdin'): string {
  return `copy ${quoted(name)} (${columns.map(quoted).join(', ')}) ${direction}`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
