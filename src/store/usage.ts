// What an organization uses of its limits, by their names.
import type { OrganizationId } from '../base/ids.ts'
import type { Queryable } from '../postgres/db.ts'
import type { Limits } from './organizations.ts'

export type Use = Pick<
  Limits,
  | 'messagesPerMinute'
  | 'messagesPerDay'
  | 'recipientsPerDay'
  | 'receivedMessagesPerDay'
  | 'receivedBytesPerDay'
  | 'inboxes'
  | 'domains'
  | 'webhookEndpoints'
  | 'managedStarter'
>

export async function readUse(db: Queryable, organizationId: OrganizationId, at: Date): Promise<Use> {
  const [row] = await db.query<Use>(
    `select
      case when is_running(u.minute_started_at, $2) then u.minute_messages else 0 end as "messagesPerMinute",
      case when u.day = today.day then u.day_messages else 0 end as "messagesPerDay",
      case when u.day = today.day then u.day_recipients else 0 end as "recipientsPerDay",
      case when r.day = today.day then r.messages else 0 end as "receivedMessagesPerDay",
      case when r.day = today.day then r.bytes else 0 end as "receivedBytesPerDay",
      (select count(*) from inbox i where i.organization_id = o.id and i.status = 'active') as inboxes,
      (select count(*) from domain d where d.organization_id = o.id) as domains,
      (select count(*) from webhook w where w.organization_id = o.id and w.status <> 'deleted') as "webhookEndpoints",
      o.managed_used as "managedStarter"
    from organization o
    join usage u on u.organization_id = o.id
    join received_usage r on r.organization_id = o.id
    cross join (select ($2::timestamptz at time zone 'UTC')::date as day) today
    where o.id = $1`,
    [organizationId, at],
  )
  return row!
}
