// An organization's use of its limits, by their names, and the counting of its stored bytes.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable, Writer } from '../../postgres/db.ts'
import type { DueCondition } from '../due.ts'
import type { Limits } from './organizations.ts'

export type Use = Pick<
  Limits,
  | 'messagesPerMinute'
  | 'messagesPerDay'
  | 'recipientsPerDay'
  | 'receivedMessagesPerDay'
  | 'receivedBytesPerDay'
  | 'storedBytes'
  | 'inboxes'
  | 'domains'
  | 'webhookEndpoints'
  | 'managedStarter'
>

/**
 * The organization's stored bytes. The counter in `received_usage u` still includes deleted bytes that are not folded yet.
 */
export const storedBytes = `(u.stored_bytes - coalesce(
  (select sum(d.bytes) from stored_delta d where d.organization_id = u.organization_id), 0))::bigint`

/**
 * A part of a statement in which `gone` has the rows of deleted messages. Subtracts received messages from the stored
 * bytes.
 */
export const countGone = `counted as (
  insert into stored_delta (organization_id, bytes)
  select g.organization_id, sum(r.size_bytes) from gone g join raw r on r.id = g.raw_id
  where g.direction = 'inbound' group by 1)`

/** Holds if `foldStored` finds a row. */
export const storedDue: DueCondition = 'exists (select from stored_delta)'

/** Folds up to `limit` deletions into the counters; returns how many. */
export async function foldStored(db: Writer, limit: number): Promise<number> {
  const [row] = await db.query<{ folded: number }>('select fold_stored($1) as folded', [limit])
  return row!.folded
}

export async function readUse(db: Queryable, organizationId: OrganizationId, at: Date): Promise<Use> {
  const [row] = await db.query<Use>(
    `select
      case when is_running(u.minute_started_at, $2) then u.minute_messages else 0 end as "messagesPerMinute",
      case when u.day = today.day then u.day_messages else 0 end as "messagesPerDay",
      case when u.day = today.day then u.day_recipients else 0 end as "recipientsPerDay",
      r.*,
      (select count(*) from inbox i where i.organization_id = o.id and i.status = 'active') as inboxes,
      (select count(*) from domain d where d.organization_id = o.id) as domains,
      (select count(*) from webhook w where w.organization_id = o.id and w.status <> 'deleted') as "webhookEndpoints",
      o.managed_used as "managedStarter"
    from organization o
    join usage u on u.organization_id = o.id
    cross join (select ($2::timestamptz at time zone 'UTC')::date as day) today
    cross join lateral (
      select case when u.day = today.day then u.messages else 0 end as "receivedMessagesPerDay",
        case when u.day = today.day then u.bytes else 0 end as "receivedBytesPerDay", ${storedBytes} as "storedBytes"
      from received_usage u where u.organization_id = o.id) r
    where o.id = $1`,
    [organizationId, at],
  )
  return row!
}
