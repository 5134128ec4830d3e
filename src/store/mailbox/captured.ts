// Mail that the embedded capture server took instead of sending it out.
import type { Queryable, Tx } from '../../postgres/db.ts'
import { lastUuid } from '../rows.ts'
import { deleteUnusedRaws, insertRaws, type RawRow } from './raws.ts'

export interface CapturedMail {
  id: string
  sender: string
  recipients: string[]
  raw: RawRow
}

/** Stores captured mails and keeps the newest `keep`. Returns the blobs of the older mails that it deleted. */
export async function insertCaptured(
  tx: Tx,
  mails: CapturedMail[],
  keep: number,
  at: Date,
): Promise<string[]> {
  await insertRaws(
    tx,
    mails.map(({ raw }) => raw),
    at,
  )
  for (const { id, sender, recipients, raw } of mails) {
    await tx.query(
      'insert into captured_mail (id, sender, recipients, raw_id, captured_at) values ($1, $2, $3, $4, $5) on conflict (id) do nothing',
      [id, sender, recipients, raw.id, at],
    )
  }
  const gone = await tx.query<{ rawId: string }>(
    `delete from captured_mail where id in (select id from captured_mail order by id desc offset $1) returning raw_id as "rawId"`,
    [keep],
  )
  return await deleteUnusedRaws(
    tx,
    gone.map(({ rawId }) => rawId),
  )
}

/** Deletes all captured mail. Returns the blobs that nothing else uses. */
export async function deleteCaptured(tx: Tx): Promise<string[]> {
  const gone = await tx.query<{ rawId: string }>('delete from captured_mail returning raw_id as "rawId"')
  return await deleteUnusedRaws(
    tx,
    gone.map(({ rawId }) => rawId),
  )
}

export interface CapturedRow {
  id: string
  rawId: string
  sender: string
  recipients: string[]
  sizeBytes: number
  capturedAt: Date
}

const columns = `c.id, c.raw_id as "rawId", c.sender, c.recipients, r.size_bytes as "sizeBytes", c.captured_at as "capturedAt"`

/** Lists captured mails, newest first, after the id `before`. */
export async function listCaptured(
  db: Queryable,
  before: string | null,
  limit: number,
): Promise<CapturedRow[]> {
  return await db.query<CapturedRow>(
    `select ${columns} from captured_mail c join raw r on r.id = c.raw_id
    where c.id < coalesce($1, '${lastUuid}'::uuid) order by c.id desc limit $2`,
    [before, limit],
  )
}

export async function findCaptured(db: Queryable, id: string): Promise<CapturedRow | null> {
  const [row] = await db.query<CapturedRow>(
    `select ${columns} from captured_mail c join raw r on r.id = c.raw_id where c.id = $1`,
    [id],
  )
  return row ?? null
}
