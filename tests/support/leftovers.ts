// Searches every table, including future ones, for rows that a deletion must not leave behind.
import type { Queryable } from '../../src/postgres/db.ts'

/** The table that a column of this name refers to. */
const parents: Record<string, string> = {
  message_id: 'select id::text from message',
  inbox_id: `select id::text from inbox where status = 'active'`,
  thread_id: 'select id::text from thread',
  raw_id: 'select id::text from raw',
  submission_id: 'select id::text from submission',
}

/**
 * The record of a send outlives its inbox: it proves the send, and answers its key with 410. An id in the index queue is
 * dropped when it is processed. The position of a deleted message is kept until its inbox is deleted.
 */
const outliving = [
  ...['submission.message_id', 'submission.inbox_id', 'delivery.inbox_id', 'complaint.message_id'],
  ...['search_waiting.message_id', 'message_tombstone.message_id'],
]

/** A message also names a submission that retention has removed, and states its result. */
const excused: Record<string, string> = { 'message.submission_id': 'settled_as is null' }

/** Every reference to a missing row, every raw row without a reference, and every thread without messages. */
export async function findLeftovers(db: Queryable): Promise<string[]> {
  const columns = await db.query<{ table: string; column: string }>(
    `select c.table_name as "table", c.column_name as "column" from information_schema.columns c
    join information_schema.tables t using (table_schema, table_name)
    where c.table_schema = 'public' and t.table_type = 'BASE TABLE' and c.column_name = any($1) order by 1, 2`,
    [Object.keys(parents)],
  )
  const found: string[] = []
  for (const { table, column } of columns) {
    if (outliving.includes(`${table}.${column}`)) continue
    const rows = await db.query<{ id: string }>(
      `select ${column}::text as id from ${table} where ${column} is not null
      and ${column}::text not in (${parents[column]}) and ${excused[`${table}.${column}`] ?? true}`,
    )
    found.push(...rows.map(({ id }) => `${table}.${column} ${id}`))
  }
  const owners = columns.filter(({ column }) => column === 'raw_id').map(({ table }) => table)
  const references = owners.map((table) => `select raw_id from ${table} where raw_id is not null`)
  const unused = await db.query<{ id: string }>(
    `select id from raw where id not in (${references.join(' union all ')})`,
  )
  const empty = await db.query<{ id: string }>(
    'select id from thread where id not in (select thread_id from message)',
  )
  return [...found, ...unused.map(({ id }) => `raw ${id}`), ...empty.map(({ id }) => `thread ${id}`)]
}

/** Organizations whose counter of stored received mail differs from a recount at the same moment. */
export async function findMiscounts(
  db: Queryable,
): Promise<{ organizationId: string; counted: number; kept: number }[]> {
  return await db.query(
    `with kept as (
      select organization_id, size_bytes as bytes from spool
      union all
      select m.organization_id, r.size_bytes from message m join raw r on r.id = m.raw_id where m.direction = 'inbound'
    ), compared as (
      select u.organization_id as "organizationId",
        (u.stored_bytes - coalesce((select sum(d.bytes) from stored_delta d
          where d.organization_id = u.organization_id), 0))::bigint as counted,
        coalesce((select sum(k.bytes) from kept k where k.organization_id = u.organization_id), 0)::bigint as kept
      from received_usage u
    ) select * from compared where counted <> kept`,
  )
}

/** The tables with a row that contains one of the words, as text or as bytes, ignoring case. */
export async function findWords(db: Queryable, words: string[]): Promise<string[]> {
  const tables = await db.query<{ name: string }>(
    `select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`,
  )
  const needles = words.flatMap((word) => [word.toLowerCase(), Buffer.from(word).toString('hex')])
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await db.query(
      `select from ${name} t where exists (select from unnest($1::text[]) w where position(w in lower(t::text)) > 0) limit 1`,
      [needles],
    )
    if (rows.length > 0) found.push(name)
  }
  return found
}
