// The outbox: what is told to customers, appended in the transaction that makes it true, and read in commit order.
import type { OrganizationId } from '../base/ids.ts'
import type { Queryable, Tx } from '../postgres/db.ts'

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

/** A place in the outbox, between or on rows. */
export interface OutboxPlace {
  xact: string
  seq: number
}

export interface OutboxRow extends OutboxPlace {
  organizationId: OrganizationId
  items: OutboxItem[]
  createdAt: Date
}

const columns = `o.xact::text as xact, o.seq, o.organization_id as "organizationId", o.items, o.created_at as "createdAt"`
/** No transaction that still runs can add a row below. */
const isSettled = 'o.xact < pg_snapshot_xmin(pg_current_snapshot())'

/** Rows of some organizations after a place, in order; the place up to which all has been read, and whether that was all. */
export async function readOutbox(
  db: Queryable,
  organizationIds: readonly string[],
  after: OutboxPlace,
  limit: number,
): Promise<{ rows: OutboxRow[]; place: OutboxPlace; isMore: boolean }> {
  // Looking at a bounded stretch of everybody's rows costs less than an index look-up for each of 1,000 organizations.
  const stretch = await db.query<OutboxPlace>(
    `select o.xact::text as xact, o.seq from outbox o
    where (o.xact, o.seq) > ($1::xid8, $2::bigint) and ${isSettled} order by o.xact, o.seq limit $3`,
    [after.xact, after.seq, limit],
  )
  const last = stretch.at(-1)
  if (!last) return { rows: [], place: after, isMore: false }
  const rows = await db.query<OutboxRow>(
    `select ${columns} from outbox o where (o.xact, o.seq) > ($1::xid8, $2::bigint) and (o.xact, o.seq) <= ($3::xid8, $4::bigint)
      and o.organization_id = any($5) order by o.xact, o.seq`,
    [after.xact, after.seq, last.xact, last.seq, organizationIds],
  )
  return { rows, place: { xact: last.xact, seq: last.seq }, isMore: stretch.length === limit }
}

/** One organization's rows from a place on, that place's own row included, in order. */
export async function readOutboxOf(
  db: Queryable,
  organizationId: OrganizationId,
  from: OutboxPlace,
  limit: number,
): Promise<OutboxRow[]> {
  return await db.query<OutboxRow>(
    `select ${columns} from outbox o where o.organization_id = $1 and (o.xact, o.seq) >= ($2::xid8, $3::bigint)
      and ${isSettled} order by o.xact, o.seq limit $4`,
    [organizationId, from.xact, from.seq, limit],
  )
}

/** The end of what may be read now, of all organizations. */
export async function newestPlace(db: Queryable): Promise<OutboxPlace> {
  const [row] = await db.query<OutboxPlace>(
    `select o.xact::text as xact, o.seq from outbox o where ${isSettled} order by o.xact desc, o.seq desc limit 1`,
  )
  return row ?? { xact: '0', seq: 0 }
}

export async function newestRowOf(db: Queryable, organizationId: OrganizationId): Promise<OutboxRow | null> {
  const [row] = await db.query<OutboxRow>(
    `select ${columns} from outbox o where o.organization_id = $1 and ${isSettled}
    order by o.xact desc, o.seq desc limit 1`,
    [organizationId],
  )
  return row ?? null
}
