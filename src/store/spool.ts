// Received mail between its 250 and its filing, and the mail kept for the service itself.
import type { InboxId, MessageId, OrganizationId } from '../base/ids.ts'
import type { Queryable, Tx } from './db.ts'
import { packRaws, type RawRow, selectRaws } from './raws.ts'

/** What is known of a received message beyond its bytes. */
export interface SpoolEnvelope {
  from: string
  /** Recipients as given, tags included, of this inbox alone. */
  recipients: string[]
  helo: string
  remoteIp: string
  tls: { encrypted: boolean; protocol: string; cipher: string }
  protocol: string
  receivedBy: string
}

export interface SpoolRow {
  id: MessageId
  organizationId: OrganizationId
  inboxId: InboxId
  rawId: string
  envelope: SpoolEnvelope
  receivedAt: Date
  failures: number
}

export interface KeptRow {
  id: string
  purpose: 'operator' | 'feedback' | 'return_path'
  address: string
  envelope: SpoolEnvelope
}

/** One received message: its bytes once, and a row for each inbox and service address that it goes to. */
export interface ReceivedMail {
  raw: RawRow
  receivedAt: Date
  inboxes: { id: MessageId; organizationId: OrganizationId; inboxId: InboxId; envelope: SpoolEnvelope }[]
  kept: KeptRow[]
}

/**
 * Stores received mails together, in one statement. An inbox that was deleted meanwhile gets nothing; answers for each
 * mail whether anything of it was stored. Run again with the same ids, it changes nothing.
 */
export async function insertReceived(db: Queryable, mails: ReceivedMail[], at: Date): Promise<boolean[]> {
  const inboxes = mails.flatMap((mail, i) =>
    mail.inboxes.map((row) => ({ i, ...row, raw: mail.raw.id, at: mail.receivedAt })),
  )
  const kept = mails.flatMap((mail, i) =>
    mail.kept.map((row) => ({ i, ...row, raw: mail.raw.id, at: mail.receivedAt })),
  )
  const { rows, bytes } = packRaws(mails.map(({ raw }) => raw))
  const stored = await db.query<{ i: number }>(
    `with living as (
      select x.* from jsonb_to_recordset($1::jsonb) as x(
        i integer, id text, "organizationId" uuid, "inboxId" text, raw uuid, envelope jsonb, at timestamptz)
      join inbox b on b.id = x."inboxId" and b.status = 'active' order by b.id for key share of b
    ), needed as (
      select * from jsonb_to_recordset($2::jsonb) as x(
        i integer, id text, purpose text, address text, raw uuid, envelope jsonb, at timestamptz)
    ), stored as (
      insert into raw (id, size_bytes, bytes, blob, created_at) ${selectRaws('$3', '$4', '$5')}
      where x.id in (select raw from living union all select raw from needed) on conflict (id) do nothing
    ), spooled as (
      insert into spool (id, organization_id, inbox_id, raw_id, envelope, received_at, due_at)
      select id, "organizationId", "inboxId", raw, envelope, at, at from living on conflict (id) do nothing
    ), kept as (
      insert into kept_mail (id, purpose, address, raw_id, envelope, received_at)
      select id, purpose, address, raw, envelope, at from needed on conflict (id) do nothing
    )
    select i from living union select i from needed`,
    [JSON.stringify(inboxes), JSON.stringify(kept), rows, bytes, at],
  )
  const places = new Set(stored.map(({ i }) => i))
  return mails.map((_, i) => places.has(i))
}

/**
 * Takes up to `limit` due mails with their bytes, and no more than weigh `maxBytes` together unless it is a single one;
 * where `mostFailures` is given, of those that have failed no more often.
 * The claim writes nothing and falls with the transaction. Answers whether there is more to be had at once.
 */
export async function claimSpool(
  tx: Tx,
  at: Date,
  { limit, maxBytes, mostFailures }: { limit: number; maxBytes: number; mostFailures?: number | undefined },
): Promise<{ taken: (SpoolRow & RawRow)[]; isMore: boolean }> {
  const [claim] = await tx.query<{ claimed: string[]; isMore: boolean }>(
    'select claimed, is_more as "isMore" from claim_spool($1, $2, $3, $4)',
    [at, limit, maxBytes, mostFailures ?? null],
  )
  const { claimed, isMore } = claim!
  if (claimed.length === 0) return { taken: [], isMore }
  const taken = await tx.query<SpoolRow & RawRow>(
    `select s.id, s.organization_id as "organizationId", s.inbox_id as "inboxId", s.raw_id as "rawId", s.envelope,
      s.received_at as "receivedAt", s.failures, r.size_bytes as "sizeBytes", r.bytes, r.blob
    from spool s join raw r on r.id = s.raw_id where s.id = any($1) and s.due_at <= $2 order by s.due_at, s.id`,
    [claimed, at],
  )
  return { taken, isMore: isMore || taken.length < claimed.length }
}

/** Lets the transaction that holds the claims stay idle for as long as reading the mails may take at worst. */
export async function keepClaims(tx: Tx): Promise<void> {
  await tx.query(`set local idle_in_transaction_session_timeout = '300s'`)
}

/** Has mails filed later, without counting a failure. */
export async function postponeSpool(db: Queryable, ids: readonly string[], dueAt: Date): Promise<void> {
  await db.query('update spool set due_at = $2 where id = any($1)', [ids, dueAt])
}

/** Notes that filing failed, and when it is tried again. */
export async function noteFailedSpool(db: Queryable, ids: readonly string[], dueAt: Date): Promise<void> {
  await db.query('update spool set failures = failures + 1, due_at = $2 where id = any($1)', [ids, dueAt])
}
