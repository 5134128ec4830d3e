// Raw bytes: received messages, shared by their recipients, and the attachments of outbound ones.
import type { Queryable, Tx } from './db.ts'

/** Bytes up to 256 KiB stand in the row; above that `blob` names them in the blob store. */
export interface RawRow {
  id: string
  sizeBytes: number
  bytes: Buffer | null
  blob: string | null
}

/** Bytes above this go to the blob store. */
export const maxInlineBytes = 256 * 1024

/**
 * The rows of a VALUES list, with parameters numbered from `first`, and the parameters. Bytes go as binary ones: a bytea
 * within a text array costs four times as much.
 */
export function rawValues(raws: RawRow[], first: number): { rows: string; values: unknown[] } {
  const rows = raws.map((_, i) => {
    const place = first + i * 4
    return `($${place}::uuid, $${place + 1}::integer, $${place + 2}::bytea, $${place + 3}::text)`
  })
  return {
    rows: rows.join(', '),
    values: raws.flatMap(({ id, sizeBytes, bytes, blob }) => [id, sizeBytes, bytes, blob]),
  }
}

export async function insertRaws(tx: Tx, raws: RawRow[], at: Date): Promise<void> {
  if (raws.length === 0) return
  const { rows, values } = rawValues(raws, 2)
  await tx.query(
    `insert into raw (id, size_bytes, bytes, blob, created_at)
    select id, size_bytes, bytes, blob, $1 from (values ${rows}) given (id, size_bytes, bytes, blob)
    on conflict (id) do nothing`,
    [at, ...values],
  )
}

export async function findRaw(db: Queryable, id: string): Promise<RawRow | null> {
  const [row] = await db.query<RawRow>(
    'select id, size_bytes as "sizeBytes", bytes, blob from raw where id = $1',
    [id],
  )
  return row ?? null
}

/** Deletes those of the raw rows that nothing refers to any more; answers the blobs they named. */
export async function deleteUnusedRaws(tx: Tx, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  // Two that delete the last two references at once would each leave the bytes to the other, and nobody would take them.
  await tx.query('select from raw where id = any($1::uuid[]) order by id for update', [ids])
  const rows = await tx.query<{ blob: string | null }>(
    `delete from raw r where r.id = any($1::uuid[])
      and not exists (select from message m where m.raw_id = r.id)
      and not exists (select from spool s where s.raw_id = r.id)
      and not exists (select from kept_mail k where k.raw_id = r.id)
      and not exists (select from captured_mail c where c.raw_id = r.id)
    returning r.blob`,
    [ids],
  )
  return rows.flatMap(({ blob }) => blob ?? [])
}
