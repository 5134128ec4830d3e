// Mail for the service's own addresses: reports until they are read, and what operators may want to see, for a while.
import type { Queryable, Tx } from './db.ts'
import { deleteUnusedRaws, type RawRow } from './raws.ts'
import type { KeptRow } from './spool.ts'

export interface KeptReport extends KeptRow {
  purpose: 'feedback' | 'return_path'
  rawId: string
  receivedAt: Date
  failures: number
}

const due = 'coalesce(k.retry_at, k.received_at)'

/**
 * Takes up to `limit` due reports with their bytes, and no more than weigh `maxBytes` together unless it is a single one;
 * the row locks are the claim, and fall with the transaction. Answers whether more was due.
 */
export async function claimReports(
  tx: Tx,
  at: Date,
  { limit, maxBytes }: { limit: number; maxBytes: number },
): Promise<{ taken: (KeptReport & RawRow)[]; isMore: boolean }> {
  const rows = await tx.query<KeptReport & RawRow & { due: number }>(
    `with claimed as materialized (
      select k.*, ${due} as due_at, r.size_bytes from kept_mail k join raw r on r.id = k.raw_id
      where k.purpose <> 'operator' and ${due} <= $1 order by ${due} limit $2 for update of k skip locked
    ), weighed as (
      select *, sum(size_bytes) over (order by due_at, id) as bytes_so_far from claimed
    )
    select k.id, k.purpose, k.address, k.envelope, k.raw_id as "rawId", k.received_at as "receivedAt", k.failures,
      r.size_bytes as "sizeBytes", r.bytes, r.blob, (select count(*) from claimed) as due
    from weighed k join raw r on r.id = k.raw_id where k.bytes_so_far - k.size_bytes = 0 or k.bytes_so_far <= $3
    order by k.due_at, k.id`,
    [at, limit, maxBytes],
  )
  const count = rows[0]?.due ?? 0
  return { taken: rows.map(({ due, ...row }) => row), isMore: count === limit || count > rows.length }
}

/** Deletes what has been read; answers the blobs that nothing needs any more, to be deleted after the commit. */
export async function deleteKept(tx: Tx, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const gone = await tx.query<{ rawId: string }>(
    'delete from kept_mail where id = any($1) returning raw_id as "rawId"',
    [ids],
  )
  return await deleteUnusedRaws(
    tx,
    gone.map(({ rawId }) => rawId),
  )
}

/** Has reports looked at again later, without counting a failure. */
export async function postponeReports(tx: Tx, ids: string[], retryAt: Date): Promise<void> {
  if (ids.length > 0) await tx.query('update kept_mail set retry_at = $2 where id = any($1)', [ids, retryAt])
}

/** Notes that reading failed, and when it is tried again; null sets the mail aside, for operators to see. */
export async function noteFailedReport(db: Queryable, id: string, retryAt: Date | null): Promise<void> {
  await db.query(
    `update kept_mail set failures = failures + 1, retry_at = $2,
      purpose = case when $2::timestamptz is null then 'operator' else purpose end where id = $1`,
    [id, retryAt],
  )
}

/**
 * Deletes up to `limit` of what operators have been kept: what came before `before`, and all but the newest `keep`.
 * Answers how many went, and their blobs.
 */
export async function dropOldKept(
  tx: Tx,
  { before, keep, limit }: { before: Date; keep: number; limit: number },
): Promise<{ dropped: number; blobs: string[] }> {
  const old = await tx.query<{ id: string }>(
    `select id from kept_mail where purpose = 'operator' and (received_at < $1 or (received_at, id) <= (
      select received_at, id from kept_mail where purpose = 'operator' order by received_at desc, id desc offset $2 limit 1))
    order by received_at, id limit $3 for update skip locked`,
    [before, keep, limit],
  )
  const blobs = await deleteKept(
    tx,
    old.map(({ id }) => id),
  )
  return { dropped: old.length, blobs }
}
