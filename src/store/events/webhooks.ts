// Customers' endpoints, and the leases under which nodes call them.
import type { OrganizationId, PersonId, WebhookId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { anyDue, type DueCondition } from '../due.ts'
import { type Asker, isUnowned, type Lease, Leases, living } from '../leases.ts'
import { countRows } from '../rows.ts'
import { skipScan } from '../sending/skip-scan.ts'

export interface WebhookRow {
  id: WebhookId
  organizationId: OrganizationId
  url: string
  /** Null: all event types. */
  eventTypes: string[] | null
  description: string | null
  status: 'active' | 'disabled'
  createdAt: Date
  updatedAt: Date
}

const columns = `w.id, w.organization_id as "organizationId", w.url, w.event_types as "eventTypes", w.description, w.status,
  w.created_at as "createdAt", w.updated_at as "updatedAt"`

/** Adds an endpoint. It gets all events that are committed after this. */
export async function insertWebhook(
  tx: Tx,
  row: WebhookRow & { madeBy: PersonId | null },
  sealedSecret: Buffer,
): Promise<void> {
  const named = new Arguments({
    id: row.id,
    organization_id: row.organizationId,
    url: row.url,
    event_types: row.eventTypes,
    description: row.description,
    status: row.status,
    sealed_secret: sealedSecret,
    made_by: row.madeBy,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  })
  await tx.query('select begin_fan_out()')
  await tx.query(named.insertInto('webhook'), named.values)
}

export async function countWebhooks(db: Queryable, organizationId: OrganizationId): Promise<number> {
  return await countRows(db, `webhook where organization_id = $1 and status <> 'deleted'`, [organizationId])
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

/** Lists the organization's endpoints, newest first, after `beforeId`. */
export async function listWebhooks(
  db: Queryable,
  organizationId: OrganizationId,
  beforeId: string | null,
  limit: number,
): Promise<WebhookRow[]> {
  return await db.query<WebhookRow>(
    `select ${columns} from webhook w where w.organization_id = $1 and w.status <> 'deleted'
      and w.id < coalesce($2, 'whk_g') order by w.id desc limit $3`,
    [organizationId, beforeId, limit],
  )
}

/** Returns the endpoint, locked. */
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

/** Writes the fields that customers may change. An endpoint that becomes active again has no history of failures. */
export async function updateWebhook(tx: Tx, row: WebhookRow): Promise<void> {
  await tx.query(
    `update webhook set url = $2, event_types = $3, description = $4, status = $5, updated_at = $6,
      failing_since = case when status = 'active' then failing_since end
    where id = $1`,
    [row.id, row.url, row.eventTypes, row.description, row.status, row.updatedAt],
  )
}

/** Leaves tombstones without secrets. They are not called any more, and their deliveries are purged later. */
export async function buryWebhooks(tx: Tx, ids: readonly WebhookId[], at: Date): Promise<void> {
  await tx.query(
    `update webhook set status = 'deleted', url = '', description = null, sealed_secret = '', sealed_previous_secret = null,
      updated_at = $2 where id = any($1::text[])`,
    [ids, at],
  )
}

/**
 * Removes a secret that cannot be opened any more. Until the endpoint has a new secret it is not called, and each
 * delivery records that. Returns null if the endpoint is deleted.
 */
export async function loseSecret(tx: Tx, id: string, at: Date): Promise<WebhookRow | null> {
  const [row] = await tx.query<WebhookRow>(
    `update webhook w set sealed_secret = '', sealed_previous_secret = null, previous_until = null, updated_at = $2
    where w.id = $1 and w.status <> 'deleted' returning ${columns}`,
    [id, at],
  )
  return row ?? null
}

/** Replaces the secret. The previous secret also signs until `previousUntil`. */
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
export interface WebhookLease extends Lease {
  key: WebhookId
}

const isActiveCustomer = `exists (select from organization o where o.id = r.organization_id and o.status = 'active')`

export const webhookLeases = new Leases<WebhookLease>({
  name: 'webhook',
  id: 'id',
  columns: 'r.id as key, r.epoch',
  mayBegin: `r.status = 'active' and ${isActiveCustomer}`,
  mayGoOn: `r.status = 'active'`,
})

const isFirst = `status = 'pending' and next_attempt_at is null`
const isAgain = `status = 'pending' and next_attempt_at is not null`

/** Whether the endpoint is being called now: it is active, a node holds its lease, and a delivery is due. */
export async function isBeingCalled(tx: Tx, id: WebhookId, at: Date): Promise<boolean> {
  const due = (which: string) => `exists (select from webhook_delivery where webhook_id = w.id and ${which})`
  const rows = await tx.query(
    `select from webhook w where w.id = $1 and w.status = 'active' and w.owner = any(living_nodes())
      and (${due(isFirst)} or ${due(`${isAgain} and next_attempt_at <= $2`)})`,
    [id, at],
  )
  return rows.length > 0
}

/** Holds if `findDueWebhooks` can find an endpoint. */
export const webhooksDue: DueCondition = `(exists (select from webhook_delivery where ${isFirst})
  or ${anyDue('next_attempt_at', `webhook_delivery where ${isAgain}`)})`

/** Finds up to `limit` endpoints with due deliveries and without a living owner. Endpoints without failures come first. */
export async function findDueWebhooks(
  db: Queryable,
  { nodeId, held }: Asker,
  at: Date,
  limit: number,
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `with recursive ${living},
    ${skipScan('first', 'webhook_id', `webhook_delivery where ${isFirst}`)},
    ${skipScan('again', 'webhook_id, next_attempt_at', `webhook_delivery where ${isAgain}`)},
    due as (select webhook_id as id from first union select webhook_id from again where next_attempt_at <= $3)
    select r.id from due join webhook r on r.id = due.id and ${isUnowned('id')} and ${webhookLeases.table.mayBegin}
    order by r.failing_since nulls first, r.id limit $4`,
    [nodeId, held, at, limit],
  )
  return rows.map(({ id }) => id)
}
