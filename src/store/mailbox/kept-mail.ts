// Mail for the service's own addresses: reports until they are read, and mail for operators for a limited time.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx, Writer } from '../../postgres/db.ts'
import { type Claim, isOfClaim } from '../work.ts'
import { deleteUnusedRaws, type RawRow } from './raws.ts'
import type { KeptRow } from './spool.ts'

export interface KeptReport extends KeptRow {
  organizationId: OrganizationId | null
  purpose: 'feedback' | 'return_path'
  rawId: string
  receivedAt: Date
  failures: number
}

/** Reads the claimed reports with their bytes, in the order in which they came or are due again. */
export async function readKept(db: Queryable, ids: readonly string[]): Promise<(KeptReport & RawRow)[]> {
  return await db.query<KeptReport & RawRow>(
    `select k.id, k.purpose, k.address, k.envelope,
      k.organization_id as "organizationId", k.raw_id as "rawId", k.received_at as "receivedAt", k.failures,
      r.size_bytes as "sizeBytes", r.bytes, r.blob
    from kept_mail k join raw r on r.id = k.raw_id where k.id = any($1) order by k.due_at, k.id`,
    [ids],
  )
}

/** Locks the reports that this claim still holds; returns their ids. */
export async function lockReports(
  tx: Tx,
  { owner, until }: Claim,
  ids: readonly string[],
): Promise<Set<string>> {
  const rows = await tx.query<{ id: string }>(
    `select id from kept_mail where id = any($1) and ${isOfClaim('$2', '$3')} order by id for update`,
    [ids, owner, until],
  )
  return new Set(rows.map(({ id }) => id))
}

/** Operators' mail that may be deleted for newer mail: an operator has read it, or it is a report that could not be read. */
const isDone = '(read_at is not null or failures > 0)'

export interface KeptAmount {
  mails: number
  bytes: number
}

/** Counts the unread mail of a purpose, from one network or (null) from all, up to `maxMails` mails. */
export async function countWaitingKept(
  db: Queryable,
  purpose: KeptRow['purpose'],
  network: string | null,
  maxMails: number,
): Promise<KeptAmount> {
  const [row] = await db.query<KeptAmount>('select mails, bytes from count_waiting_kept($1, $2, $3)', [
    purpose,
    network,
    maxMails,
  ])
  return row!
}

/** Deletes mail that has been read. Returns its unused blobs, which the caller deletes after the commit. */
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

/** Ends the claim of reports that we cannot read, and leaves them to operators. */
export async function setAsideReports(
  db: Writer,
  { owner, until }: Claim,
  ids: readonly string[],
  failures: number,
): Promise<void> {
  await db.query(
    `update kept_mail set claimed_by = null, claimed_until = null, failures = $4, purpose = 'operator'
    where id = any($1) and ${isOfClaim('$2', '$3')}`,
    [ids, owner, until, failures],
  )
}

/**
 * Deletes up to `limit` of operators' mail. Returns how many it deleted, and their blobs.
 *
 * - Mail from before `before` is deleted, read or not. Younger unread mail always stays.
 * - Younger read mail and reports that were set aside: the newest `keep` stay. Beyond `keepBytes`, counted from the newest,
 *   those from before `heavyBefore` are deleted too.
 */
export async function dropOldKept(
  tx: Tx,
  keeping: { before: Date; keep: number; heavyBefore: Date; keepBytes: number },
  limit: number,
): Promise<{ dropped: number; blobs: string[] }> {
  const { before, keep, heavyBefore, keepBytes } = keeping
  const old = await tx.query<{ id: string }>(
    `select id from kept_mail where purpose = 'operator' and (received_at < $1 or ${isDone} and ((received_at, id) <= (
      select received_at, id from kept_mail where purpose = 'operator' and ${isDone}
      order by received_at desc, id desc offset $2 limit 1)
    or received_at < $3 and id = any(array(
      select id from (
        select id, sum(size_bytes) over (order by received_at desc, id desc) as bytes from kept_mail
        where purpose = 'operator' and ${isDone}
      ) k where bytes > $4))))
    order by received_at, id limit $5 for update skip locked`,
    [before, keep, heavyBefore, keepBytes, limit],
  )
  const blobs = await deleteKept(
    tx,
    old.map(({ id }) => id),
  )
  return { dropped: old.length, blobs }
}

/** A mail kept for operators, without its bytes. */
export interface KeptMail {
  id: string
  address: string
  envelope: KeptRow['envelope']
  rawId: string
  sizeBytes: number
  receivedAt: Date
  /** When an operator first read it. */
  readAt: Date | null
}

const columns = `id, address, envelope, raw_id as "rawId", size_bytes as "sizeBytes", received_at as "receivedAt",
  read_at as "readAt"`

/** Lists operators' mail, newest first, after `beforeId`: all, or only unread mail. */
export async function listKept(
  db: Queryable,
  { beforeId, limit, isUnread }: { beforeId: string | null; limit: number; isUnread: boolean },
): Promise<KeptMail[]> {
  return await db.query<KeptMail>(
    `select ${columns} from kept_mail where purpose = 'operator' and ($1::text is null
      or (received_at, id) < (select received_at, id from kept_mail where id = $1))
      and (not $3 or read_at is null)
    order by received_at desc, id desc limit $2`,
    [beforeId, limit, isUnread],
  )
}

export async function findKept(db: Queryable, id: string): Promise<KeptMail | null> {
  const [row] = await db.query<KeptMail>(
    `select ${columns} from kept_mail where purpose = 'operator' and id = $1`,
    [id],
  )
  return row ?? null
}

/** Notes when an operator read the mail for the first time. */
export async function markKeptRead(db: Writer, id: string, at: Date): Promise<void> {
  await db.query(
    `update kept_mail set read_at = $2 where id = $1 and purpose = 'operator' and read_at is null`,
    [id, at],
  )
}

/** Counts operators' unread mail by recipient address, the most first. */
export async function countUnreadKept(db: Queryable): Promise<{ address: string; count: number }[]> {
  return await db.query<{ address: string; count: number }>(
    `select address, count(*)::integer as count from kept_mail where purpose = 'operator' and read_at is null
    group by address order by count desc, address`,
  )
}
