// The outbox: events for customers, appended in the transaction that makes them true, and read in commit order.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'

/** The events for customers, except test calls. */
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
 * One event. `id` is a UUID version 7 and becomes the `webhook-id`. The item refers to its object, or carries its `content`
 * as customers see it:
 *
 * - `message.sent` to `message.complained`: `submission`, and `event` (its number).
 * - `message.received`: `message`.
 * - `attachment.scanned`: `message`, and `attachment` (its id).
 * - `domain.verified`, `domain.failed`: `domain`.
 * - `suppression.created`: `content` (`{suppression}`).
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
  /** Only this endpoint gets the event. */
  webhook?: string
}

/** Announces events in the transaction that makes them true. The functions of the hot paths insert their own rows. */
export async function announce(
  tx: Tx,
  { organizationId, at, items }: { organizationId: string; at: Date; items: OutboxItem[] },
): Promise<void> {
  const facts = items.map((item) => ({ org: organizationId, ...item }))
  await tx.query('select append_outbox($1, $2)', [JSON.stringify(facts), at])
}

/** The condition that the outbox has rows after the cursor. Some may not be readable yet. */
export const hasUnread = (
  cursor: 'webhooks' | 'search',
) => `exists (select from outbox_cursor c cross join lateral (
    select from outbox o where (o.xact, o.seq) > (c.xact, c.seq) limit 1) next where c.name = '${cursor}')`

/** A row's position in the outbox. */
export interface OutboxCursor {
  xact: string
  seq: number
}

/** An event's position: one item of a row, counted from 0. */
export interface EventCursor extends OutboxCursor {
  item: number
}

export interface OutboxEvent {
  organizationId: OrganizationId
  cursor: EventCursor
  item: OutboxItem
  announcedAt: Date
}

const isAfter = '(o.xact, o.seq) > ($1::xid8, $2::bigint)'
/** The condition of rows before which no running transaction can still add a row. */
const isSettled = 'o.xact < pg_snapshot_xmin(pg_current_snapshot())'

/**
 * Returns the organizations of the next `limit` rows, the last row, and whether there are more. Those may not be readable
 * before a running transaction ends.
 */
export async function findOrganizationsAfter(
  db: Queryable,
  after: OutboxCursor,
  limit: number,
): Promise<{ organizationIds: Set<OrganizationId>; last: OutboxCursor; isMore: boolean }> {
  const rows = await db.query<OutboxCursor & { organizationId: OrganizationId }>(
    `select o.xact::text as xact, o.seq, o.organization_id as "organizationId" from outbox o
    where ${isAfter} and ${isSettled} order by o.xact, o.seq limit $3`,
    [after.xact, after.seq, limit],
  )
  const organizationIds = new Set(rows.map(({ organizationId }) => organizationId))
  const last = rows.at(-1) ?? after
  const [rest] = await db.query<{ isMore: boolean }>(
    `select exists (select from outbox o where ${isAfter}) as "isMore"`,
    [last.xact, last.seq],
  )
  return { organizationIds, last, isMore: rest!.isMore }
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

/** Reads the next events of one organization, in order. */
export async function readEventsOf(
  db: Queryable,
  organizationId: OrganizationId,
  after: EventCursor,
  limit: number,
): Promise<OutboxEvent[]> {
  // Every row has at least one item, and the first row may have been read to its end. So `limit + 1` rows are enough.
  const rows = await db.query<EventColumns>(
    `select ${eventColumns} from (
      select * from outbox o where o.organization_id = $1 and (o.xact, o.seq) >= ($2::xid8, $3::bigint)
        and ${isSettled} order by o.xact, o.seq limit $5 + 1) o ${itemsOf}
    where (o.xact, o.seq) > ($2::xid8, $3::bigint) or i.number - 1 > $4 order by o.xact, o.seq, i.number limit $5`,
    [organizationId, after.xact, after.seq, after.item, limit],
  )
  return rows.map(toEvent)
}

/** Returns the position of the last row that may be read now, of all organizations. */
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
 * Renumbers all rows in their order, below every future transaction, and moves the readers' cursors with them. The rows
 * came from another server, whose transaction numbers are meaningless here.
 */
export async function renumberOutbox(tx: Tx): Promise<void> {
  await tx.query(
    `update outbox_cursor c set xact = '3', seq = (select count(*) from outbox o where (o.xact, o.seq) <= (c.xact, c.seq))`,
  )
  // Writes an unused transaction number first, because no two rows may have the same key, even within this statement.
  await tx.query(
    `update outbox o set xact = (select greatest(max(xact)::text::numeric, pg_current_xact_id()::text::numeric) + 1
        from outbox)::text::xid8, seq = n.ordinal
    from (select xact, seq, row_number() over (order by xact, seq) as ordinal from outbox) n
    where o.xact = n.xact and o.seq = n.seq`,
  )
  await tx.query(`update outbox set xact = '3'`)
}
