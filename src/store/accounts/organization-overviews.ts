// Organizations for operators: each with its objects, its waiting recipients, its members and its use of limits.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import { countRows, lastUuid } from '../rows.ts'
import type { OrganizationRow } from './organizations.ts'
import { storedBytes } from './usage.ts'

export interface OverviewFilter {
  /** A part of the name, or an id; null: all. */
  search: string | null
  status: OrganizationRow['status'] | null
  /** Keys that have expired by this time do not count. */
  at: Date
}

export interface OrganizationOverview {
  id: OrganizationId
  name: string
  status: OrganizationRow['status']
  createdAt: Date
  inboxes: number
  domains: number
  keys: number
  /** Recipients that wait, including held ones. */
  waiting: number
  /** The address of the first owner; null if there are no owners. */
  owner: string | null
}

/** The most waiting recipients that are counted, of all organizations together. */
const maxCounted = 1_000_000
const waiting = `claim_epoch is null and status in ('pending', 'deferred')`

/** Lists organizations, newest first, after `beforeId`. */
export async function listOverviews(
  db: Queryable,
  { search, status, at }: OverviewFilter,
  beforeId: string | null,
  limit: number,
): Promise<OrganizationOverview[]> {
  return await db.query<OrganizationOverview>(
    `with page as materialized (
      select id, name, status, created_at from organization
      where status <> 'deleted' and ($1::text is null or status = $1) and id < coalesce($3, '${lastUuid}'::uuid)
        and ($2::text is null or position(lower($2) in lower(name)) > 0 or id::text = lower($2))
      order by id desc limit $4
    ), held as materialized (
      select organization_id, count(*) as count from (
        select organization_id from delivery where ${waiting} limit $5) w group by organization_id
    )
    select p.id, p.name, p.status, p.created_at as "createdAt",
      (select count(*) from inbox i where i.organization_id = p.id and i.status = 'active') as inboxes,
      (select count(*) from domain d where d.organization_id = p.id) as domains,
      (select count(*) from api_key k where k.organization_id = p.id and k.person_id is null
        and k.revoked_at is null and (k.expires_at is null or k.expires_at > $6)) as keys,
      coalesce((select h.count from held h where h.organization_id = p.id), 0) as waiting,
      (select x.email from member m join person x on x.id = m.person_id
        where m.organization_id = p.id and m.role = 'owner' order by m.created_at, x.id limit 1) as owner
    from page p order by p.id desc`,
    [status, search, beforeId, limit, maxCounted, at],
  )
}

/** Counts the organizations by status. */
export async function countByStatus(db: Queryable): Promise<Record<OrganizationRow['status'], number>> {
  const rows = await db.query<{ status: OrganizationRow['status']; count: number }>(
    `select status, count(*) as count from organization where status <> 'deleted' group by status`,
  )
  return { pending: 0, active: 0, suspended: 0, deleting: 0, ...Object.fromEntries(rows.map(pairOf)) }
}

function pairOf({ status, count }: { status: string; count: number }): [string, number] {
  return [status, count]
}

export interface MemberOverview {
  email: string
  name: string
  role: 'owner' | 'member' | 'viewer'
  createdAt: Date
  /** When a session of the person was last used; null: no session is stored. */
  lastSeenAt: Date | null
}

export async function listMemberOverviews(db: Queryable, id: OrganizationId): Promise<MemberOverview[]> {
  return await db.query<MemberOverview>(
    `select p.email, p.name, m.role, m.created_at as "createdAt",
      (select max(s.last_used_at) from session s where s.person_id = p.id) as "lastSeenAt"
    from member m join person p on p.id = m.person_id where m.organization_id = $1 order by m.created_at, p.id`,
    [id],
  )
}

type HoldingsUse = Record<
  | 'inboxes'
  | 'domains'
  | 'webhookEndpoints'
  | 'receivedMessagesPerDay'
  | 'receivedBytesPerDay'
  | 'storedBytes',
  number
>

/** Reads the use of the limits that `readUsage` does not return, by the limits' names. */
export async function readHoldingsUse(db: Queryable, id: OrganizationId, at: Date): Promise<HoldingsUse> {
  const [row] = await db.query<HoldingsUse>(
    `select (select count(*) from inbox where organization_id = $1 and status = 'active') as inboxes,
      (select count(*) from domain where organization_id = $1) as domains,
      (select count(*) from webhook where organization_id = $1 and status <> 'deleted') as "webhookEndpoints",
      case when u.is_today then u.messages else 0 end as "receivedMessagesPerDay",
      case when u.is_today then u.bytes else 0 end as "receivedBytesPerDay", u.stored as "storedBytes"
    from (select day = ($2 at time zone 'UTC')::date as is_today, messages, bytes, ${storedBytes} as stored
      from received_usage u where organization_id = $1) u`,
    [id, at],
  )
  return row!
}

/** Counts the organization's waiting recipients. */
export async function countWaiting(db: Queryable, id: OrganizationId): Promise<number> {
  const first = `(select organization_id from delivery where ${waiting} limit $2) w where w.organization_id = $1`
  return await countRows(db, first, [id, maxCounted])
}
