// The outbox: what is told to customers, appended in the transaction that makes it true, and read in commit order.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'

/** What customers can be told, beside test calls. */
export const eventTypes = [
  'message.received',
  'message.sent',
  'message.delivered',
  'message.deferred',
  'message.bounced',
  'message.failed',
  'message.complained',
  'attachment.scanned',
  'suppression.created',
  'domain.verified',
  'domain.failed',
] as const

export type EventType = (typeof eventTypes)[number] | 'webhook.test'

/**
 * One thing to tell. `id` is a UUID version 7 and becomes the `webhook-id`. It refers to what it tells of, or carries its
 * `content` as customers see it: `submission` with `event` (its number) for `message.sent` to `message.complained`,
 * `message` for `message.received`, `message` and `attachment` (its id) for `attachment.scanned`, `domain` for
 * `domain.verified` and `domain.failed`, `content` (`{suppression}`) for `suppression.created`.
 */
export interface OutboxItem {
  id: string
  type: EventType
  submission?: string
  /** 0 for `message.sent`: the acceptance is the submission itself. */
  event?: number
  message?: string
  attachment?: string
  domain?: string
  content?: Record<string, unknown>
  /** Only this endpoint is told. */
  webhook?: string
}

/** Tells an organization of something, in the transaction that makes it true. The functions of the hot paths insert their own row. */
export async function announce(
  tx: Tx,
  { organizationId, at, items }: { organizationId: string; at: Date; items: OutboxItem[] },
): Promise<void> {
  const facts = items.map((item) => ({ org: organizationId, ...item }))
  await tx.query('select append_outbox($1, $2)', [JSON.stringify(facts), at])
}

/** Where a row stands in the outbox. */
export interface OutboxCursor {
  xact: string
  seq: number
}

/** Where an event stands: one item of a row, counted from 0. */
export interface EventCursor extends OutboxCursor {
  item: number
}

export interface OutboxEvent {
  organizationId: OrganizationId
  cursor: EventCursor
  item: OutboxItem
  announcedAt: Date
}

/** No transaction that still runs can add a row below. */
const isSettled = 'o.xact < pg_snapshot_xmin(pg_current_snapshot())'

/** Whose rows the next `limit` ones are; the last of them, and whether there may be more. */
export async function findOrganizationsAfter(
  db: Queryable,
  after: OutboxCursor,
  limit: number,
): Promise<{ organizationIds: Set<OrganizationId>; last: OutboxCursor; isMore: boolean }> {
  const rows = await db.query<OutboxCursor & { organizationId: OrganizationId }>(
    `select o.xact::text as xact, o.seq, o.organization_id as "organizationId" from outbox o
    where (o.xact, o.seq) > ($1::xid8, $2::bigint) and ${isSettled} order by o.xact, o.seq limit $3`,
    [after.xact, after.seq, limit],
  )
  const organizationIds = new Set(rows.map(({ organizationId }) => organizationId))
  return { organizationIds, last: rows.at(-1) ?? after, isMore: rows.length === limit }
}

interface EventColumns extends EventCursor, Omit<OutboxEvent, 'cursor' | 'item'> {
  content: OutboxItem
}

const eventColumns = `o.xact::text as xact, o.seq, i.number - 1 as item, i.content,
  o.organization_id as "organizationId", o.created_at as "announcedAt"`
const itemsOf = 'cross join jsonb_array_elements(o.items) with ordinality i (content, number)'

function toEvent({ xact, seq, item, content, ...rest }: EventColumns): OutboxEvent {
  return { ...rest, cursor: { xact, seq, item }, item: content }
}

/** The next events of one organization, in order. */
export async function readEventsOf(
  db: Queryable,
  organizationId: OrganizationId,
  after: EventCursor,
  limit: number,
): Promise<OutboxEvent[]> {
  // No row is without items, and the first one may have been read whole.
  const rows = await db.query<EventColumns>(
    `select ${eventColumns} from (
      select * from outbox o where o.organization_id = $1 and (o.xact, o.seq) >= ($2::xid8, $3::bigint)
        and ${isSettled} order by o.xact, o.seq limit $5 + 1) o ${itemsOf}
    where (o.xact, o.seq) > ($2::xid8, $3::bigint) or i.number - 1 > $4 order by o.xact, o.seq, i.number limit $5`,
    [organizationId, after.xact, after.seq, after.item, limit],
  )
  return rows.map(toEvent)
}

/** The end of what may be read now, of all organizations. */
export async function newestCursor(db: Queryable): Promise<OutboxCursor> {
  const [row] = await db.query<OutboxCursor>(
    `select o.xact::text as xact, o.seq from outbox o where ${isSettled} order by o.xact desc, o.seq desc limit 1`,
  )
  return row ?? { xact: '0', seq: 0 }
}

export async function newestEventOf(
  db: Queryable,
  organizationId: OrganizationId,
): Promise<OutboxEvent | null> {
  const [row] = await db.query<EventColumns>(
    `select ${eventColumns} from (
      select * from outbox o where o.organization_id = $1 and ${isSettled}
      order by o.xact desc, o.seq desc limit 1) o ${itemsOf} order by i.number desc limit 1`,
    [organizationId],
  )
  return row ? toEvent(row) : null
}

/**
 * Numbers all rows anew, in their order, below every transaction to come, and moves the readers along: they came from
 * another server, whose transactions say nothing here.
 */
export async function renumberOutbox(tx: Tx): Promise<void> {
  await tx.query(
    `update outbox_cursor c set xact = '3', seq = (select count(*) from outbox o where (o.xact, o.seq) <= (c.xact, c.seq))`,
  )
  // By way of a transaction that no other row names, for none may have the number of another meanwhile.
  await tx.query(
    `update outbox o set xact = (select greatest(max(xact)::text::numeric, pg_current_xact_id()::text::numeric) + 1
        from outbox)::text::xid8, seq = n.ordinal
    from (select xact, seq, row_number() over (order by xact, seq) as ordinal from outbox) n
    where o.xact = n.xact and o.seq = n.seq`,
  )
  await tx.query(`update outbox set xact = '3'`)
}
