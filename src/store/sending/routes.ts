// Destination queues: the routes, their owners, and how operators pause, resume and flush them.
import type { OrganizationId, SubmissionId } from '../../base/ids.ts'
import type { Queryable, Tx, Writer } from '../../postgres/db.ts'
import { anyDue, type DueCondition } from '../due.ts'
import { type Asker, isUnowned, type Lease, Leases, living } from '../leases.ts'
import type { StoredStep } from './conversation.ts'
import { skipScan } from './skip-scan.ts'

/**
 * The SQL that says whether a new queue begins paused. The key of a queue may have prefixes: a wish for TLS, a pool of source
 * addresses. A pause of `far.test` or `bulk:far.test` holds for `requiretls:bulk:far.test` too, as otherwise a sender
 * could avoid it.
 */
export function isPausedWith(key: string): string {
  return `exists (select from route b where b.paused and b.key in
    (substring(${key} from ':([^:]*)$'), substring(${key} from ':([^:]*:[^:]*)$')))`
}

/** Adds missing routes. Acceptance calls this once per route and remembers it. */
export async function insertRoutes(db: Writer, keys: string[], at: Date): Promise<void> {
  await db.query(
    // In order, so that two transactions that add the same routes cannot deadlock.
    `insert into route (key, paused, created_at)
    select distinct k.key, ${isPausedWith('k.key')}, $2::timestamptz from unnest($1::text[]) k(key) order by 1
    on conflict do nothing`,
    [keys, at],
  )
}

/** The hosts of a route are asked in rounds: each of them once, over as many attempts as that takes. */
export interface Round {
  /** Names of hosts and addresses that were asked so far. Empty if the round is over. */
  asked: readonly string[]
  /** Whether further hosts follow in this round. */
  hasUnasked: boolean
}

/**
 * The reason why a route is blocked, and the round that the next attempt continues. The reason has no data of an organization, because everyone with mail in this queue sees it.
 */
export interface RouteFault extends Round {
  text: string
  classification: 'network' | 'dns' | 'tls'
}

export interface RouteRow extends Lease {
  paused: boolean
  failures: number
  notBefore: Date | null
  /** Why the route is blocked; null once it works again or was flushed. */
  lastFault: string | null
  lastFaultAt: Date | null
  /** The hosts that were asked before the last fault, and had one too. */
  asked: string[]
}

const columns = `r.key, r.epoch, r.paused, r.failures, r.not_before as "notBefore",
  case when r.failures > 0 then r.last_fault end as "lastFault", r.last_fault_at as "lastFaultAt", r.asked`
const waiting = `d.claim_epoch is null and d.status in ('pending', 'deferred')`

const mayGoOut = (at: string) => `(not r.paused and (r.not_before is null or r.not_before <= ${at}))`

/** A paused or blocked queue is acquired only if its lost owner left deliveries on the wire. */
export const routeLeases = new Leases<RouteRow>({
  name: 'route',
  id: 'key',
  columns,
  mayBegin: `(${mayGoOut('asked.at')} or exists (select from delivery d where d.route = r.key and d.claim_epoch is not null))`,
  mayGoOn: 'true',
})

/** A queue that could be acquired, and an organization with due mail in it. */
export interface Candidate {
  key: string
  organizationId: string
  failures: number
}

/** The position from which a walk through all queues continues. */
export interface WalkCursor {
  key: string
  status: string
  organizationId: string
}

/**
 * Returns those of the named queues that have no living owner, are not blocked, and have new mail due. There is one
 * candidate for each of up to 32 organizations with such mail.
 */
export async function findAmong(db: Writer, asker: Asker, at: Date, keys: string[]): Promise<Candidate[]> {
  return await db.query<Candidate>(
    `with ${living}
    select r.key, organization_id as "organizationId", r.failures
    from unnest($4::text[]) k(key) join route r on r.key = k.key and ${isUnowned('key')} and ${mayGoOut('$3')}
    cross join lateral next_route_organizations(r.key, 'pending', $3, $5, '{}', 32, $5) t
    cross join unnest(t.organizations) organization_id`,
    [asker.nodeId, asker.held, at, keys, beforeAll.organizationId],
  )
}

const beforeAll: WalkCursor = { key: '', status: '', organizationId: '00000000-0000-0000-0000-000000000000' }
/** With the status `z`, this sorts after all waiting mail of a queue. */
const lastOrganization = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * Continues a walk through all queues. It passes up to `max` pairs of a queue and an organization with waiting mail, by
 * one index probe for each pair. A queue that has an owner or is blocked takes one probe. Returns the pairs with due
 * mail, and where to continue; null at the end of the walk.
 */
export async function walkQueues(
  db: Queryable,
  asker: Asker,
  at: Date,
  walk: { from: WalkCursor | null; max: number },
): Promise<{ candidates: Candidate[]; next: WalkCursor | null }> {
  const from = walk.from ?? beforeAll
  const seen = await db.query<Candidate & WalkCursor & { isDue: boolean; step: number }>(
    `with recursive ${living}, walk as (
      select $4::text as route, $5::text as status, $6::uuid as organization_id, null::timestamptz as due_at,
        0 as failures, 0 as step
      union all
      select next.*, walk.step + 1 from walk cross join lateral (
        select d.route, d.status, d.organization_id, d.due_at,
          (select r.failures from route r where r.key = d.route and ${isUnowned('key')} and ${mayGoOut('$3')}) as failures
        from delivery d
        where ${waiting} and (d.route, d.status, d.organization_id) > (walk.route,
          case when walk.failures is null then 'z' else walk.status end,
          case when walk.failures is null then $8::uuid else walk.organization_id end)
        order by d.route, d.status, d.organization_id, d.due_at limit 1) next
      where walk.step < $7
    ), judged as (
      select *, due_at <= $3 and failures is not null
        and (select o.status from organization o where o.id = organization_id) = 'active' as is_due from walk
    )
    select route as key, status, organization_id as "organizationId", failures, coalesce(is_due, false) as "isDue", step
    from judged where is_due or step = $7`,
    [asker.nodeId, asker.held, at, from.key, from.status, from.organizationId, walk.max, lastOrganization],
  )
  const candidates = seen.filter(({ isDue }) => isDue)
  return { candidates, next: seen.find(({ step }) => step === walk.max) ?? null }
}

/** Holds if `walkQueues` or `findOrphaned` can find a queue. */
export const routesDue: DueCondition = `(exists (select from delivery where claim_epoch is not null)
  or ${anyDue('d.due_at', `delivery d where ${waiting}`)})`

/** Finds the queues whose lost owner left deliveries on the wire, each with the organization of one such delivery. */
export async function findOrphaned(db: Queryable, { nodeId, held }: Asker): Promise<Candidate[]> {
  return await db.query<Candidate>(
    `with recursive ${living},
    ${skipScan('claimed', 'route, organization_id', 'delivery where claim_epoch is not null', 'route')}
    select r.key, c.organization_id as "organizationId", r.failures
    from claimed c join route r on r.key = c.route and ${isUnowned('key')}`,
    [nodeId, held],
  )
}

/** Records a fault of the route, so that the whole route waits. It is the only write while a destination is down. */
export async function backOffRoute(
  db: Writer,
  route: Lease,
  fault: RouteFault & { failures: number; notBefore: Date },
  at: Date,
): Promise<void> {
  await db.query(
    `update route set failures = $3, not_before = $4, last_fault = $5, last_fault_class = $6, last_fault_at = $7, asked = $8
    where key = $1 and epoch = $2`,
    [
      route.key,
      route.epoch,
      fault.failures,
      fault.notBefore,
      fault.text,
      fault.classification,
      at,
      fault.asked,
    ],
  )
}

/** Lets the queue wait without a fault. */
export async function holdRoute(db: Writer, route: Lease, until: Date): Promise<void> {
  await db.query('update route set not_before = $3 where key = $1 and epoch = $2', [
    route.key,
    route.epoch,
    until,
  ])
}

export async function clearBackOff(db: Writer, route: Lease): Promise<void> {
  await db.query(
    `update route set failures = 0, not_before = null, last_fault = null where key = $1 and epoch = $2`,
    [route.key, route.epoch],
  )
}

/**
 * Releases the deliveries that a lost owner had on the wire; returns how many. It is unknown whether the remote server
 * accepted them, so they are retried. A lost attempt keeps its number and its event.
 */
export async function reclaimOrphans(db: Writer, route: Lease, at: Date): Promise<number> {
  const [row] = await db.query<{ count: number }>('select reclaim_orphans($1, $2, $3) as count', [
    route.key,
    route.epoch,
    at,
  ])
  return row!.count
}

/** The limits of the group of destinations that the queue belongs to. */
export interface QueueGroup {
  name: string
  connections: number
  perMinute: number | null
  perHour: number | null
  pausedUntil: string | null
  reason: string | null
}

export interface QueueRow extends RouteRow {
  /** Null: its group was never limited. */
  group: QueueGroup | null
  /** The provider that it sends to, once that was refused or counts messages. */
  provider: string | null
  owner: number | null
  waiting: number
  onWire: number
  oldestDueAt: Date | null
}

/**
 * Lists for operators every route with waiting or claimed mail, and every paused or failed one; or only the route `key`. A
 * route that is paused with that of its domain is left out while it has no mail: its key has a prefix.
 */
export async function listQueues(db: Queryable, key: string | null): Promise<QueueRow[]> {
  return await db.query<QueueRow>(
    `with n as (
      select route, sum(waiting) as waiting, sum(on_wire) as on_wire, min(oldest) as oldest from (
        select d.route, count(*) as waiting, 0 as on_wire, min(d.due_at) as oldest from delivery d
        where ${waiting} and ($1::text is null or d.route = $1) group by d.route
        union all
        select d.route, 0, count(*), null from delivery d
        where d.claim_epoch is not null and ($1::text is null or d.route = $1) group by d.route
      ) counted group by route
    )
    select ${columns}, r.owner, r.destination_group as provider, coalesce(n.waiting, 0)::integer as waiting,
      coalesce(n.on_wire, 0)::integer as "onWire", n.oldest as "oldestDueAt",
      (select jsonb_build_object('name', g.name, 'connections', g.connections, 'perMinute', g.per_minute,
        'perHour', g.per_hour, 'pausedUntil', g.paused_until, 'reason', g.reason)
        from destination_group g where g.name = r.destination_group) as "group"
    from route r left join n on n.route = r.key
    where r.key = $1 or ($1::text is null and (n.route is not null or r.failures > 0 or (r.paused and not exists (
      select from route b where b.key in (substring(r.key from ':([^:]*)$'), substring(r.key from ':([^:]*:[^:]*)$'))
        and b.paused))))
    order by n.waiting desc nulls last, r.key`,
    [key],
  )
}

/** A recipient that waits in a queue. */
export interface WaitingRow {
  submissionId: SubmissionId
  position: number
  email: string
  status: 'pending' | 'deferred'
  organizationId: OrganizationId
  organizationName: string
  /** Whether it waits because its organization is not active. */
  isHeld: boolean
  sender: string
  subject: string
  attempts: number
  /** The last response for this recipient. */
  response: string | null
  /** The conversation of its last attempt. */
  conversation: StoredStep[] | null
  acceptedAt: Date
  dueAt: Date
  expiresAt: Date
}

/** Lists recipients that wait in the queue, from `offset` on: untried ones first, by organization and due time. */
export async function listWaiting(
  db: Queryable,
  key: string,
  offset: number,
  limit: number,
): Promise<WaitingRow[]> {
  return await db.query<WaitingRow>(
    // Each branch reads the index in its order. One order over both states would sort the whole queue.
    `with page as materialized (
      select * from (${['pending', 'deferred']
        .map(
          (status) => `(select * from delivery d where d.route = $1 and d.status = '${status}' and ${waiting}
        order by d.organization_id, d.due_at limit $2::integer + $3::integer)`,
        )
        .join(' union all ')}) d
      order by d.status desc, d.organization_id, d.due_at, d.submission_id, d.position offset $2 limit $3
    )
    select p.submission_id as "submissionId", p.position, p.email, p.status, p.organization_id as "organizationId",
      o.name as "organizationName", o.status <> 'active' as "isHeld", s.sender->>'email' as sender, s.subject,
      p.attempts, p.response, case when p.attempts > 0 then (
        select e.conversation from event e where e.submission_id = p.submission_id and e.recipient = p.email
          and e.attempt = p.attempts order by e.seq desc limit 1
      ) end as conversation, s.created_at as "acceptedAt", p.due_at as "dueAt", p.expires_at as "expiresAt"
    from page p join submission s on s.id = p.submission_id join organization o on o.id = p.organization_id
    order by p.status desc, p.organization_id, p.due_at, p.submission_id, p.position`,
    [key, offset, limit],
  )
}

/** The queues whose keys end with one of the keys in `$1`, after a prefix. */
const withPrefix = `key ~ ':' and array[substring(key from ':([^:]*)$'), substring(key from ':([^:]*:[^:]*)$')] && $1`

/** Pauses the queues, even if they do not exist yet, and those with a prefix. Mail that comes for them later waits. */
export async function pauseRoutes(tx: Tx, keys: readonly string[], at: Date): Promise<void> {
  await tx.query(`update route set paused = true where ${withPrefix}`, [keys])
  await tx.query(
    `insert into route (key, paused, created_at) select key, true, $2 from unnest($1::text[]) key order by key
    on conflict (key) do update set paused = true`,
    [keys, at],
  )
}

/** Resumes the queues, and those with a prefix. Returns false if there are no such queues. */
export async function resumeRoutes(tx: Tx, keys: readonly string[]): Promise<boolean> {
  const rows = await tx.query(
    `update route set paused = false where key = any($1) or (${withPrefix}) returning key`,
    [keys],
  )
  return rows.length > 0
}

/**
 * Makes all waiting deliveries due at once and clears the back-off. Returns how many waited for either, so that they may
 * go out now and could not before. Null: no such route.
 */
export async function flushRoute(
  tx: Tx,
  { key, pool }: { key: string; pool: string | null },
  at: Date,
): Promise<number | null> {
  const [route] = await tx.query<{ wasBlocked: boolean }>(
    `with before as (select key, coalesce(not_before > $2, false) as was_blocked from route where key = $1 for update)
    update route r set failures = 0, not_before = null from before b where r.key = b.key
    returning b.was_blocked as "wasBlocked"`,
    [key, at],
  )
  if (!route) return null
  // Nodes that send to the group see that its pause is over when they next read its limits.
  await tx.query(
    `update destination_group set paused_until = null, changed_at = $2
    where paused_until > $2 and (
      name = (select destination_group from route where key = $1)
      -- The groups of the sources of a pool.
      or starts_with(name, (select destination_group || ' from ' from route where key = $1 and $3::text is not null)))`,
    [key, at, pool],
  )
  // The update changes only mail that is due later, so the second count is not changed by it.
  const [row] = await tx.query<{ moved: number }>(
    `with later as (
      update delivery d set due_at = $2 where d.route = $1 and ${waiting} and d.due_at > $2 returning 1
    )
    select ((select count(*) from later) + case when $3 then (
      select count(*) from delivery d where d.route = $1 and ${waiting} and d.due_at <= $2) else 0 end)::integer as moved`,
    [key, at, route.wasBlocked],
  )
  return row!.moved
}
