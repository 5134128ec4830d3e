// Webhook deliveries: fanned out from the outbox, called, recorded, listed, replayed and purged.
import { firstUuidAt, type OrganizationId, type WebhookId } from '../../base/ids.ts'
import type { Queryable, Tx, Writer } from '../../postgres/db.ts'
import type { DueCondition } from '../due.ts'
import { lastUuid } from '../rows.ts'
import { stretchOf } from '../stretch.ts'
import { hasUnread, type OutboxItem } from './outbox.ts'
import type { WebhookLease } from './webhooks.ts'

export interface FannedOut {
  taken: number
  /** Whether the outbox has rows after these. Some may not be readable yet. */
  isMore: boolean
  /** Whether any endpoint exists. */
  isWanted: boolean
  webhooks: string[]
}

/** Holds if an endpoint exists and `fanOut` has not read all of the outbox. */
export const fanOutDue: DueCondition = `(exists (select from webhook where status <> 'deleted') and ${hasUnread('webhooks')})`

/** Turns the next outbox rows into deliveries, by the function `fan_out_events`. */
export async function fanOut(db: Writer, wanted: number, at: Date): Promise<FannedOut> {
  const [row] = await db.query<FannedOut>(
    'select taken, is_more as "isMore", is_wanted as "isWanted", webhooks from fan_out_events($1, $2)',
    [wanted, at],
  )
  // Another node fans out. It may not see the newest rows, so there may be more.
  return row ?? { taken: 0, isMore: true, isWanted: true, webhooks: [] }
}

/** Renumbers the outbox after a restore into another cluster, because its transaction numbers are then meaningless. */
export async function mendOutbox(tx: Tx): Promise<boolean> {
  const [row] = await tx.query<{ mended: boolean }>('select mend_outbox() as mended')
  return row!.mended
}

/** One delivery with everything needed to call its endpoint. */
export interface DueCall {
  id: string
  organizationId: OrganizationId
  item: OutboxItem
  announcedAt: Date
  failures: number
  /** Whether it has never been called. */
  isFirst: boolean
  url: string
  sealedSecret: Buffer
  /** The previous secret while it still signs, else null. */
  sealedPreviousSecret: Buffer | null
}

/**
 * Finds about `limit` due deliveries of an endpoint under its lease: first attempts in the order of their events, and up to
 * a quarter of retries. `after`: the last first attempt that the endpoint's owner has taken. `except`: deliveries that the
 * owner is calling. Returns nothing under a lease that has passed, or if the endpoint or organization is not active.
 */
export async function findDueCalls(
  db: Queryable,
  { key, epoch }: WebhookLease,
  at: Date,
  { limit, after, except }: { limit: number; after: string | null; except: readonly string[] },
): Promise<DueCall[]> {
  const retries = Math.max(1, Math.floor(limit / 4))
  return await db.query<DueCall>(
    `with w as materialized (
      select w.id, w.url, w.sealed_secret, case when w.previous_until > $3 then w.sealed_previous_secret end as previous
      from webhook w join organization o on o.id = w.organization_id and o.status = 'active'
      where w.id = $1 and w.epoch = $2 and w.status = 'active'
    ), due as (
      (select 1 as round, d.* from w join webhook_delivery d on d.webhook_id = w.id
        where d.status = 'pending' and d.next_attempt_at is null and d.id > $7::uuid order by d.id limit $4)
      union all
      (select 2, d.* from w join webhook_delivery d on d.webhook_id = w.id
        where d.status = 'pending' and d.next_attempt_at is not null and d.next_attempt_at <= $3 and d.id <> all($6::uuid[])
        order by d.next_attempt_at limit $5)
    )
    select due.id, due.organization_id as "organizationId", due.item, due.announced_at as "announcedAt", due.failures,
      due.round = 1 as "isFirst", w.url, w.sealed_secret as "sealedSecret", w.previous as "sealedPreviousSecret"
    from due, w order by due.round, due.id`,
    [key, epoch, at, limit, retries, except, after ?? lowestId],
  )
}

const lowestId = '00000000-0000-0000-0000-000000000000'

/** Returns when the endpoint's next retry falls due; null if there is none. */
export async function nextRetryAt(db: Queryable, webhook: WebhookId): Promise<Date | null> {
  const [row] = await db.query<{ at: Date }>(
    `select next_attempt_at as at from webhook_delivery
    where webhook_id = $1 and status = 'pending' and next_attempt_at is not null order by next_attempt_at limit 1`,
    [webhook],
  )
  return row?.at ?? null
}

/** The result of a call, as `record_calls` takes it. */
export interface CallResult {
  delivery: string
  webhook: WebhookId
  epoch: number
  status: 'succeeded' | 'pending' | 'failed'
  next_attempt_at: Date | null
  at: Date
  request: RequestRecord | null
  response_status: number | null
  response_body: string | null
  error: string | null
  /** Whether the receiver answered 410. */
  gone: boolean
}

/** The request that was sent. Its body is available from the API, so it is not stored again. */
export interface RequestRecord {
  url: string
  timestamp: string
  sizeBytes: number
}

/** Records results, one call per batch. Returns the endpoints that this disabled. */
export async function recordCalls(db: Writer, results: CallResult[], at: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>('select record_calls as id from record_calls($1, $2)', [
    JSON.stringify(results),
    at,
  ])
  return rows.map(({ id }) => id)
}

export interface WebhookDeliveryRow {
  id: string
  webhookId: WebhookId
  item: OutboxItem
  status: 'pending' | 'succeeded' | 'failed'
  attempts: number
  lastAttemptAt: Date | null
  nextAttemptAt: Date | null
  request: RequestRecord | null
  responseStatus: number | null
  responseBody: string | null
  error: string | null
  createdAt: Date
}

const columns = `id, webhook_id as "webhookId", item, status, attempts, last_attempt_at as "lastAttemptAt",
  next_attempt_at as "nextAttemptAt", request, response_status as "responseStatus", response_body as "responseBody", error,
  created_at as "createdAt"`

/** Lists the endpoint's deliveries, newest first, after `beforeId`. */
export async function listWebhookDeliveries(
  db: Queryable,
  webhook: WebhookId,
  beforeId: string | null,
  limit: number,
): Promise<WebhookDeliveryRow[]> {
  const stretch = stretchOf(['webhook_id', 'id'], ['$1::text'], `coalesce($2, '${lastUuid}'::uuid)`)
  return await db.query<WebhookDeliveryRow>(
    `select ${columns} from webhook_delivery where ${stretch} limit $3`,
    [webhook, beforeId, limit],
  )
}

/** Makes a delivery due now and restarts its schedule. A delivery that waits for its first attempt stays as it is. */
export async function replayDelivery(
  tx: Tx,
  webhook: WebhookId,
  id: string,
  at: Date,
): Promise<WebhookDeliveryRow | null> {
  const [row] = await tx.query<WebhookDeliveryRow>(
    `update webhook_delivery set status = 'pending', failures = 0,
      next_attempt_at = case when attempts > 0 or status <> 'pending' then $3::timestamptz end
    where webhook_id = $1 and id = $2 returning ${columns}`,
    [webhook, id, at],
  )
  return row ?? null
}

/** Holds if one of the four functions below can remove or fail a row that is older than its period. */
export function purgeDue({
  outboxMs,
  deliveriesMs,
}: {
  outboxMs: number
  deliveriesMs: number
}): DueCondition {
  const isOld = (ms: number) => `created_at < asked.at - interval '${ms} ms'`
  const pending = `webhook_delivery where webhook_id = w.id and status = 'pending'`
  return `(exists (select from webhook where status = 'deleted')
    or exists (select from webhook w cross join lateral (
      (select from ${pending} and next_attempt_at is null limit 1)
      union all
      (select from ${pending} and next_attempt_at is not null limit 1)) d where w.status = 'disabled')
    or exists (select from (select created_at from webhook_delivery order by id limit 1) d where ${isOld(deliveriesMs)})
    or exists (select from (select created_at from outbox order by xact, seq limit 1) o where ${isOld(outboxMs)}))`
}

/** Fails up to `limit` waiting deliveries of disabled endpoints; returns how many. */
export async function failDisabled(tx: Tx, limit: number): Promise<number> {
  const rows = await tx.query(
    `with ended as (
      select d.id from webhook w cross join lateral (
        (select id from webhook_delivery where webhook_id = w.id and status = 'pending' and next_attempt_at is null limit $1)
        union all
        (select id from webhook_delivery where webhook_id = w.id and status = 'pending' and next_attempt_at is not null limit $1)
      ) d where w.status = 'disabled' limit $1
    )
    update webhook_delivery d set status = 'failed', next_attempt_at = null, error = 'the endpoint is disabled'
    from ended where d.id = ended.id and d.status = 'pending' returning d.id`,
    [limit],
  )
  return rows.length
}

/** Removes up to `limit` deliveries of one deleted endpoint, then its tombstone. Returns how many rows it removed. */
export async function purgeDeletedWebhook(tx: Tx, limit: number): Promise<number> {
  const [webhook] = await tx.query<{ id: WebhookId }>(
    `select id from webhook where status = 'deleted' order by id limit 1 for update skip locked`,
  )
  if (!webhook) return 0
  const rows = await tx.query(
    `delete from webhook_delivery where id in (select id from webhook_delivery where webhook_id = $1 limit $2) returning id`,
    [webhook.id, limit],
  )
  if (rows.length < limit) await tx.query('delete from webhook where id = $1', [webhook.id])
  return rows.length + 1
}

/**
 * Removes up to `limit` deliveries after `after` and from before `until`: their ids begin with their time. Returns the last
 * one, or null if there are no more.
 */
export async function purgeOldDeliveries(
  tx: Tx,
  { after, until }: { after: string | null; until: Date },
  limit: number,
): Promise<string | null> {
  const rows = await tx.query<{ id: string }>(
    `delete from webhook_delivery where id in (
      select id from webhook_delivery where id > $3::uuid and id < $1::uuid order by id limit $2) returning id`,
    [firstUuidAt(until.getTime()), limit, after ?? lowestId],
  )
  if (rows.length < limit) return null
  return rows.reduce((last, { id }) => (id > last ? id : last), rows[0]!.id)
}

/**
 * Removes up to `limit` outbox rows from before `until`. If any endpoint exists, rows not yet fanned out stay until
 * `atLast`. If any inbox is searched, rows that may announce messages not yet indexed stay. If the oldest row is younger,
 * no other row is read.
 */
export async function purgeOutbox(tx: Tx, until: Date, atLast: Date, limit: number): Promise<number> {
  const rows = await tx.query(
    `with oldest as (
      select xact, seq, created_at from outbox
      where (select created_at < $1 from outbox order by xact, seq limit 1) order by xact, seq limit $3
    )
    delete from outbox o using oldest h, outbox_cursor c, outbox_cursor indexed
    where o.xact = h.xact and o.seq = h.seq and c.name = 'webhooks' and indexed.name = 'search'
      and ((h.xact, h.seq) <= (indexed.xact, indexed.seq) or not exists (select from searched_inbox))
      and h.created_at < case
        when (h.xact, h.seq) <= (c.xact, c.seq) or not exists (select from webhook where status <> 'deleted')
        then $1::timestamptz else $2::timestamptz end
    returning o.seq`,
    [until, atLast, limit],
  )
  return rows.length
}
