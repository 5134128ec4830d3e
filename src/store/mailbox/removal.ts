// Removes rows past their retention, and rows of deleted organizations, with everything that belongs to them.
import {
  firstUuidAt,
  type InboxId,
  type MessageId,
  type OrganizationId,
  type SubmissionId,
  type ThreadId,
} from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { countGone } from '../accounts/usage.ts'
import type { DueCondition } from '../due.ts'
import { countRows } from '../rows.ts'

/** Finds settled submissions after `after` that were accepted before `before`, oldest first: their ids begin with their time. */
export async function findSettledBefore(
  tx: Tx,
  { after, before }: { after: SubmissionId | null; before: Date },
  limit: number,
): Promise<SubmissionId[]> {
  const rows = await tx.query<{ id: SubmissionId }>(
    `select id from submission where id > $1::uuid and id < $2::uuid and status <> 'pending' order by id limit $3
    for update skip locked`,
    [after ?? firstUuidAt(0), firstUuidAt(before.getTime()), limit],
  )
  return rows.map(({ id }) => id)
}

export interface MessageOfAge {
  id: MessageId
  inboxId: InboxId
  threadId: ThreadId
  rawId: string | null
  submissionId: SubmissionId | null
  /** Whether a recipient still waits for it. */
  isWaiting: boolean
}

/** Finds the oldest messages between two ids, which begin with their time. */
export async function findMessagesOfAge(
  tx: Tx,
  { afterId, beforeId }: { afterId: string; beforeId: string },
  limit: number,
): Promise<MessageOfAge[]> {
  return await tx.query<MessageOfAge>(
    `select m.id, m.inbox_id as "inboxId", m.thread_id as "threadId", m.raw_id as "rawId",
      m.submission_id as "submissionId", coalesce(s.status = 'pending', false) as "isWaiting"
    from message m left join submission s on s.id = m.submission_id
    where m.id > $1 and m.id < $2 order by m.id limit $3`,
    [afterId, beforeId, limit],
  )
}

/**
 * Finds submissions of the organization without a delivery on the wire. The others are removed once their deliveries end.
 */
export async function findRemovable(
  tx: Tx,
  organizationId: OrganizationId,
  limit: number,
): Promise<SubmissionId[]> {
  const rows = await tx.query<{ id: SubmissionId }>(
    `select s.id from submission s where s.organization_id = $1
      and not exists (select from delivery d where d.submission_id = s.id and d.claim_epoch is not null)
    order by s.id limit $2`,
    [organizationId, limit],
  )
  return rows.map(({ id }) => id)
}

/**
 * Removes submissions with their recipients, events, complaints and content. The messages that they sent stay in their
 * inboxes and read as before: each names its submission and its result. Returns the ids of raw rows that are no longer
 * referenced.
 */
export async function removeSubmissions(tx: Tx, ids: readonly SubmissionId[]): Promise<string[]> {
  if (ids.length === 0) return []
  await tx.query(
    `update message m set settled_as = s.status, settled_code = s.failure_code,
      updated_at = greatest(m.updated_at, s.updated_at)
    from submission s where s.id = any($1::uuid[]) and m.id = s.message_id`,
    [ids],
  )
  await tx.query(
    `update suppression p set submission_id = null from submission s
    where s.id = any($1::uuid[]) and p.organization_id = s.organization_id and p.submission_id = s.id`,
    [ids],
  )
  const contents = await tx.query<{ rawId: string | null }>(
    'delete from send_content where submission_id = any($1::uuid[]) returning raw_id as "rawId"',
    [ids],
  )
  for (const table of ['delivery', 'event', 'complaint', 'submission'])
    await tx.query(
      `delete from ${table} where ${table === 'submission' ? 'id' : 'submission_id'} = any($1::uuid[])`,
      [ids],
    )
  return contents.flatMap(({ rawId }) => rawId ?? [])
}

export interface Holdings {
  inboxes: number
  messages: number
  submissions: number
  domains: number
  webhooks: number
  keys: number
  suppressions: number
}

/** Counts the organization's objects that people see. */
export async function countHoldings(db: Queryable, id: OrganizationId): Promise<Holdings> {
  const [row] = await db.query<Holdings>(
    `select (select count(*) from inbox where organization_id = $1 and status = 'active') as inboxes,
      (select count(*) from inbox b join message m on m.inbox_id = b.id where b.organization_id = $1) as messages,
      (select count(*) from submission where organization_id = $1) as submissions,
      (select count(*) from domain where organization_id = $1) as domains,
      (select count(*) from webhook where organization_id = $1 and status <> 'deleted') as webhooks,
      (select count(*) from api_key where organization_id = $1) as keys,
      (select count(*) from suppression where organization_id = $1) as suppressions`,
    [id],
  )
  return row!
}

export async function findLivingInboxes(
  db: Queryable,
  id: OrganizationId,
  limit: number,
): Promise<InboxId[]> {
  const rows = await db.query<{ id: InboxId }>(
    `select id from inbox where organization_id = $1 and status = 'active' order by id limit $2`,
    [id, limit],
  )
  return rows.map((row) => row.id)
}

/** Whether mail of the organization's deleted inboxes still waits to be purged. */
export async function hasUnpurged(db: Queryable, id: OrganizationId): Promise<boolean> {
  const rows = await db.query(
    `select from inbox where organization_id = $1 and status = 'deleted' and not purged limit 1`,
    [id],
  )
  return rows.length > 0
}

/** Counts the organization's submissions. */
export async function countSubmissions(db: Queryable, id: OrganizationId): Promise<number> {
  return await countRows(db, 'submission where organization_id = $1', [id])
}

/**
 * Tables in which an organization's received mail waits until it is filed or read. Each has a condition that uses an index.
 */
const received = {
  spool: 'organization_id = $1',
  kept_mail: 'turn = $1',
}
export const receivedTables = Object.keys(received) as (keyof typeof received)[]

/** Removes up to `limit` rows of the organization's received mail. Returns the id of a raw row for each. */
export async function removeReceived(
  tx: Tx,
  table: keyof typeof received,
  id: OrganizationId,
  limit: number,
): Promise<string[]> {
  const rows = await tx.query<{ rawId: string }>(
    `delete from ${table} where id = any(array(select id from ${table} where ${received[table]} limit $2))
    returning raw_id as "rawId"`,
    [id, limit],
  )
  return rows.map(({ rawId }) => rawId)
}

/** Tables whose rows belong only to an organization. Each has an index that begins with it. */
export const ownTables = [
  'suppression',
  'complaint',
  'outbox',
  // After the outbox, because the rows of `search_waiting` come from it.
  'search_waiting',
  'metric_delta',
  'metric',
  'stored_delta',
  'domain',
] as const

/** Removes up to `limit` rows of the organization; returns how many. */
export async function removeOwnRows(
  tx: Tx,
  table: (typeof ownTables)[number],
  id: OrganizationId,
  limit: number,
): Promise<number> {
  const rows = await tx.query(
    `delete from ${table} where ctid = any(array(select ctid from ${table} where organization_id = $1 limit $2))
    returning organization_id`,
    [id, limit],
  )
  return rows.length
}

/**
 * Removes the organization's invitations, members, audit entries, usage, and keys with their borrowed requests. Its
 * members' sessions stay, without an organization.
 */
export async function removeKeys(tx: Tx, id: OrganizationId): Promise<void> {
  await tx.query('update session set organization_id = null where organization_id = $1', [id])
  for (const table of ['invitation', 'member', 'audit_entry', 'api_key'])
    await tx.query(`delete from ${table} where organization_id = $1`, [id])
  await tx.query('delete from usage where organization_id = $1', [id])
  await tx.query('delete from received_usage where organization_id = $1', [id])
}

const unpurged = `inbox where status = 'deleted' and not purged`
/** Holds if `purgeMessages` finds an inbox. */
export const inboxPurgeDue: DueCondition = `exists (select from ${unpurged})`

/**
 * Purges up to `limit` messages of one deleted inbox. After the last message, also purges its threads and search data.
 * Null: no inbox is left to purge.
 */
export async function purgeMessages(
  tx: Tx,
  limit: number,
): Promise<{ rawIds: string[]; submissionIds: SubmissionId[] } | null> {
  const [inbox] = await tx.query<{ id: InboxId }>(`select id from ${unpurged} limit 1 for update skip locked`)
  if (!inbox) return null
  const rows = await tx.query<{ rawId: string | null; submissionId: SubmissionId | null }>(
    `with gone as (
      delete from message where id in (select id from message where inbox_id = $1 limit $2)
      returning organization_id, direction, raw_id, submission_id
    ), ${countGone}
    select raw_id as "rawId", submission_id as "submissionId" from gone`,
    [inbox.id, limit],
  )
  if (rows.length < limit) {
    await tx.query('delete from thread where inbox_id = $1', [inbox.id])
    await tx.query('delete from message_tombstone where inbox_id = $1', [inbox.id])
    // In this order, because beginning a part locks the row in searched_inbox first.
    await tx.query('delete from searched_inbox where inbox_id = $1', [inbox.id])
    await tx.query('delete from search_part where inbox_id = $1', [inbox.id])
    await tx.query('update inbox set purged = true where id = $1', [inbox.id])
  }
  return {
    rawIds: rows.flatMap(({ rawId }) => rawId ?? []),
    submissionIds: rows.flatMap(({ submissionId }) => submissionId ?? []),
  }
}
