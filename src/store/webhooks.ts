// Customers' endpoints, and which node calls them.
import type { OrganizationId, WebhookId } from '../base/ids.ts'
import { Arguments } from '../postgres/arguments.ts'
import type { Queryable, Tx, Writer } from '../postgres/db.ts'
import { isNodeLock } from './nodes.ts'

export interface WebhookRow {
  id: WebhookId
  organizationId: OrganizationId
  url: string
  /** Null: all. */
  eventTypes: string[] | null
  description: string | null
  status: 'active' | 'disabled'
  createdAt: Date
  updatedAt: Date
}

const columns = `w.id, w.organization_id as "organizationId", w.url, w.event_types as "eventTypes", w.description, w.status,
  w.created_at as "createdAt", w.updated_at as "updatedAt"`

/** Adds an endpoint, which is told of all that is committed after this. */
export async function insertWebhook(tx: Tx, row: WebhookRow, sealedSecret: Buffer): Promise<void> {
  const named = new Arguments({
    id: row.id,
    organization_id: row.organizationId,
    url: row.url,
    event_types: row.eventTypes,
    description: row.description,
    status: row.status,
    sealed_secret: sealedSecret,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  })
  await tx.query('select begin_fan_out()')
  await tx.query(named.insertInto('webhook'), named.values)
}

/** Whether any organization has an endpoint. */
export async function hasWebhooks(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ has: boolean }>(
    `select exists (select from webhook where status <> 'deleted') as has`,
  )
  return row!.has
}

export async function countWebhooks(db: Queryable, organizationId: OrganizationId): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*) as count from webhook where organization_id = $1 and status <> 'deleted'`,
    [organizationId],
  )
  return row!.count
}

export async function findWebhook(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<WebhookRow | null> {
  const [row] = await db.query<WebhookRow>(
    `select ${columns} from webhook w where w.id = $2 and w.organization_id = $1 and w.status <> 'deleted'`,
    [organizationId, id],
  )
  return row ?? null
}

/** The organization's endpoints, newest first, after `beforeId`. */
export async function listWebhooks(
  db: Queryable,
  organizationId: OrganizationId,
  beforeId: string | null,
  limit: number,
): Promise<WebhookRow[]> {
  return await db.query<WebhookRow>(
    `select ${columns} from webhook w where w.organization_id = $1 and w.status <> 'deleted'
      and ($2::text is null or w.id < $2) order by w.id desc limit $3`,
    [organizationId, beforeId, limit],
  )
}

/** The endpoint, locked. */
export async function lockWebhook(
  tx: Tx,
  organizationId: OrganizationId,
  id: string,
): Promise<WebhookRow | null> {
  const [row] = await tx.query<WebhookRow>(
    `select ${columns} from webhook w where w.id = $2 and w.organization_id = $1 and w.status <> 'deleted'
    for no key update`,
    [organizationId, id],
  )
  return row ?? null
}

/** Writes what customers may change; an endpoint that is made active again starts without a history of failures. */
export async function updateWebhook(tx: Tx, row: WebhookRow): Promise<void> {
  await tx.query(
    `update webhook set url = $2, event_types = $3, description = $4, status = $5, updated_at = $6,
      failing_since = case when status = 'active' then failing_since end
    where id = $1`,
    [row.id, row.url, row.eventTypes, row.description, row.status, row.updatedAt],
  )
}

/** Leaves tombstones without secrets: nothing is called any more, and their deliveries are purged later. */
export async function buryWebhooks(tx: Tx, ids: readonly WebhookId[], at: Date): Promise<void> {
  await tx.query(
    `update webhook set status = 'deleted', url = '', description = null, sealed_secret = '', sealed_previous_secret = null,
      updated_at = $2 where id = any($1::text[])`,
    [ids, at],
  )
}

/**
 * What cannot be opened any more is no secret: the endpoint is not called until it has another, and that stands beside each
 * call that would have been made. Null where it is deleted.
 */
export async function loseSecret(tx: Tx, id: string, at: Date): Promise<WebhookRow | null> {
  const [row] = await tx.query<WebhookRow>(
    `update webhook w set sealed_secret = '', sealed_previous_secret = null, previous_until = null, updated_at = $2
    where w.id = $1 and w.status <> 'deleted' returning ${columns}`,
    [id, at],
  )
  return row ?? null
}

/** The secret that signed so far signs beside the new one until `previousUntil`. */
export async function replaceSecret(
  tx: Tx,
  id: WebhookId,
  sealedSecret: Buffer,
  { previousUntil, at }: { previousUntil: Date; at: Date },
): Promise<void> {
  await tx.query(
    `update webhook set sealed_previous_secret = sealed_secret, sealed_secret = $2, previous_until = $3, updated_at = $4
    where id = $1`,
    [id, sealedSecret, previousUntil, at],
  )
}

/** An endpoint that a node calls, under its lease. */
export interface WebhookLease {
  webhook: WebhookId
  epoch: number
}

const isFirst = `status = 'pending' and next_attempt_at is null`
const isAgain = `status = 'pending' and next_attempt_at is not null`

/** Whether the endpoint is being called at the moment: it is active, a node holds its lease, and something is due. */
export async function isBeingCalled(tx: Tx, id: WebhookId, at: Date): Promise<boolean> {
  const due = (which: string) => `exists (select from webhook_delivery where webhook_id = w.id and ${which})`
  const rows = await tx.query(
    `select from webhook w where w.id = $1 and w.status = 'active' and w.owner is not null and w.lease_until > now()
      and (${due(isFirst)} or ${due(`${isAgain} and next_attempt_at <= $2`)})`,
    [id, at],
  )
  return rows.length > 0
}

/** Every endpoint with calls to make now, found by two probes of an index for each that has any waiting. */
const heads = `first as (
  (select d.webhook_id from webhook_delivery d where ${isFirst} order by d.webhook_id limit 1)
  union all
  select next.webhook_id from first cross join lateral (
    select d.webhook_id from webhook_delivery d where ${isFirst} and d.webhook_id > first.webhook_id
    order by d.webhook_id limit 1) next
), again as (
  (select d.webhook_id, d.next_attempt_at from webhook_delivery d where ${isAgain}
    order by d.webhook_id, d.next_attempt_at limit 1)
  union all
  select next.* from again cross join lateral (
    select d.webhook_id, d.next_attempt_at from webhook_delivery d where ${isAgain} and d.webhook_id > again.webhook_id
    order by d.webhook_id, d.next_attempt_at limit 1) next
)`

/**
 * Takes over endpoints that nobody alive calls and that have calls to make. Each take-over begins a new epoch, which
 * fences the results of the old owner. `among` confines the look to endpoints that are known to have work.
 */
export async function acquireWebhooks(
  db: Writer,
  owner: { nodeId: number; leaseMs: number },
  at: Date,
  { among, limit }: { among: string[] | null; limit: number },
): Promise<WebhookLease[]> {
  const candidates = among
    ? `candidate as (select distinct id from unnest($5::text[]) id)`
    : `${heads}, candidate as (
      select webhook_id as id from first union select webhook_id from again where next_attempt_at <= $3
    )`
  return await db.query<WebhookLease>(
    `with recursive ${candidates}, free as (
      select w.id from candidate c join webhook w on w.id = c.id
      join organization o on o.id = w.organization_id and o.status = 'active'
      where w.status = 'active' and $3::timestamptz is not null
        and (w.owner is null or w.lease_until < now() or (w.owner <> $1 and not exists (
          select from pg_locks l where ${isNodeLock} and l.objid = w.owner)))
      order by w.failing_since nulls first, w.id limit $4 for no key update of w skip locked
    )
    update webhook w set owner = $1, epoch = w.epoch + 1, lease_until = now() + $2 * interval '1 ms'
    from free where w.id = free.id
    returning w.id as webhook, w.epoch`,
    [owner.nodeId, owner.leaseMs, at, limit, ...(among ? [among] : [])],
  )
}

/** Renews the leases that are still ours; one that is missing from the answer has been lost, or its endpoint has ended. */
export async function renewWebhooks(
  db: Writer,
  nodeId: number,
  held: WebhookLease[],
  leaseMs: number,
): Promise<WebhookLease[]> {
  return await db.query<WebhookLease>(
    `with ours as (
      select w.id from webhook w join unnest($2::text[], $3::bigint[]) as h(id, epoch) on w.id = h.id and w.epoch = h.epoch
      where w.owner = $1 and w.status = 'active' order by w.id for no key update of w
    )
    update webhook w set lease_until = now() + $4 * interval '1 ms' from ours where w.id = ours.id
    returning w.id as webhook, w.epoch`,
    [nodeId, held.map(({ webhook }) => webhook), held.map(({ epoch }) => epoch), leaseMs],
  )
}

/** Gives an endpoint up at once, so that another node need not wait for the lease to run out. */
export async function releaseWebhook(
  db: Writer,
  nodeId: number,
  { webhook, epoch }: WebhookLease,
): Promise<void> {
  await db.query(
    'update webhook set owner = null, lease_until = null where owner = $1 and id = $2 and epoch = $3',
    [nodeId, webhook, epoch],
  )
}
