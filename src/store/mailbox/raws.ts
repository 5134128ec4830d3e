// Raw bytes: received messages, shared by their recipients; outbound messages that clients wrote; attachments of others.
import type { Queryable, Tx } from '../../postgres/db.ts'

/** Bytes up to 256 KiB are in the row. For larger ones, `blob` names them in the blob store. */
export interface RawRow {
  id: string
  sizeBytes: number
  bytes: Buffer | null
  blob: string | null
}

/** Bytes above this go to the blob store. */
export const maxInlineBytes = 256 * 1024

/**
 * Packs raw rows into two parameters: all their bytes in one binary parameter, and each row's position in it. A bytea
 * within a text array costs four times as much. A VALUES list needs a different statement for each number of rows.
 */
export function packRaws(raws: RawRow[]): { rows: string; bytes: Buffer } {
  let offset = 0
  const rows = raws.map(({ id, sizeBytes, bytes, blob }) => {
    const start = bytes ? offset : null
    offset += bytes?.length ?? 0
    return { id, size: sizeBytes, start, blob }
  })
  return {
    rows: JSON.stringify(rows),
    bytes: Buffer.concat(raws.map(({ bytes }) => bytes ?? Buffer.alloc(0))),
  }
}

/** Returns a query that unpacks the parameters of `packRaws` into rows `x` for an insert into raw. */
export function selectRaws(rows: string, bytes: string, at: string): string {
  return `select x.id, x.size, substring(${bytes}::bytea from x.start + 1 for x.size), x.blob, ${at}::timestamptz
    from jsonb_to_recordset(${rows}::jsonb) as x(id uuid, size integer, start integer, blob text)`
}

export async function insertRaws(tx: Tx, raws: RawRow[], at: Date): Promise<void> {
  if (raws.length === 0) return
  const { rows, bytes } = packRaws(raws)
  await tx.query(
    `insert into raw (id, size_bytes, bytes, blob, created_at) ${selectRaws('$1', '$2', '$3')} on conflict (id) do nothing`,
    [rows, bytes, at],
  )
}

export async function findRaw(db: Queryable, id: string): Promise<RawRow | null> {
  const [row] = await db.query<RawRow>(
    'select id, size_bytes as "sizeBytes", bytes, blob from raw where id = $1',
    [id],
  )
  return row ?? null
}

/** Finds raw rows by id. Bytes stored in a row are cut to the first `length`. */
export async function findStarts(
  db: Queryable,
  ids: readonly string[],
  length: number,
): Promise<Map<string, RawRow>> {
  const rows = await db.query<RawRow>(
    `select id, size_bytes as "sizeBytes", substr(bytes, 1, $2) as bytes, blob from raw where id = any($1::uuid[])`,
    [ids, length],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

/** Returns the bytes of raw rows that store them, by id. */
export async function findBytes(db: Queryable, ids: readonly string[]): Promise<Map<string, Buffer>> {
  if (ids.length === 0) return new Map()
  const rows = await db.query<{ id: string; bytes: Buffer }>(
    'select id, bytes from raw where id = any($1::uuid[]) and bytes is not null',
    [ids],
  )
  return new Map(rows.map(({ id, bytes }) => [id, bytes]))
}

/** Returns those of the ids that are ids of raw rows. */
export async function findRawIds(db: Queryable, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db.query<{ id: string }>('select id from raw where id = any($1::uuid[])', [ids])
  return new Set(rows.map(({ id }) => id))
}

/** Yields the blobs of all raw rows that have one, in the order of their ids. */
export async function* listBlobs(db: Queryable): AsyncGenerator<string> {
  const pageSize = 1_000
  for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
    const rows = await db.query<{ id: string; blob: string }>(
      'select id, blob from raw where blob is not null and id > $1 order by id limit $2',
      [after, pageSize],
    )
    for (const { blob } of rows) yield blob
    if (rows.length < pageSize) return
    after = rows.at(-1)!.id
  }
}

/** Returns the blobs whose names end in these characters. A blob has the name of its row's id. */
export async function findBlobsEndingIn(db: Queryable, ending: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    'select id from raw where blob is not null and right(id::text, $2) = $1',
    [ending, ending.length],
  )
  return rows.map(({ id }) => id)
}

/** Returns the blobs of the newest raw rows that have one. */
export async function findNewestBlobs(db: Queryable, limit: number): Promise<string[]> {
  const rows = await db.query<{ blob: string }>(
    'select blob from raw where blob is not null order by id desc limit $1',
    [limit],
  )
  return rows.map(({ blob }) => blob)
}

/** Deletes those of the raw rows that are no longer referenced; returns their blobs. */
export async function deleteUnusedRaws(tx: Tx, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  // Locked: if two transactions deleted the last two references at once, each would leave the bytes to the other.
  await tx.query('select from raw where id = any($1::uuid[]) order by id for update', [ids])
  const rows = await tx.query<{ blob: string | null }>(
    `delete from raw r where r.id = any($1::uuid[])
      and not exists (select from message m where m.raw_id = r.id)
      and not exists (select from send_content x where x.raw_id = r.id)
      and not exists (select from spool s where s.raw_id = r.id)
      and not exists (select from kept_mail k where k.raw_id = r.id)
      and not exists (select from captured_mail c where c.raw_id = r.id)
    returning r.blob`,
    [ids],
  )
  return rows.flatMap(({ blob }) => blob ?? [])
}
