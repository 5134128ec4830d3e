// Destination queues: the routes, who owns them, and what operators say about them.
import type { Queryable, Tx } from './db.ts'
import { isNodeLock } from './nodes.ts'

/** Adds routes that are not there yet; acceptance asks once a route and remembers. */
export async function addRoutes(db: Queryable, keys: string[], at: Date): Promise<void> {
  await db.query(
    // In order, so that two that add the same routes never wait for each other.
    `insert into route (key, created_at) select distinct key, $2::timestamptz from unnest($1::text[]) key order by key
    on conflict do nothing`,
    [keys, at],
  )
}

export interface RouteRow {
  key: string
  epoch: number
  paused: boolean
  failures: number
  notBefore: Date | null
  lastFault: string | null
}

const columns = `r.key, r.epoch, r.paused, r.failures, r.not_before as "notBefore", r.last_fault as "lastFault"`
const waiting = `d.claim_epoch is null and d.status in ('pending', 'deferred')`

/** The first due delivery of every organization in every queue, found by one look at the index for each. */
const heads = `heads as (
  (select d.route, d.organization_id, d.due_at from delivery d where ${waiting}
    order by d.route, d.organization_id, d.due_at limit 1)
  union all
  select next.* from heads cross join lateral (
    select d.route, d.organization_id, d.due_at from delivery d
    where ${waiting} and (d.route, d.organization_id) > (heads.route, heads.organization_id)
    order by d.route, d.organization_id, d.due_at limit 1) next
)`

/** Every queue with something on the wire, found likewise. */
const claimed = `claimed as (
  (select d.route from delivery d where d.claim_epoch is not null order by d.route limit 1)
  union all
  select next.route from claimed cross join lateral (
    select d.route from delivery d where d.claim_epoch is not null and d.route > claimed.route order by d.route limit 1) next
)`

/**
 * Takes over routes that nobody alive owns: those with due deliveries, and those whose lost owner left something on the
 * wire. An owner is lost when its lease has run out or its advisory lock is gone, as after a kill -9. Each take-over
 * begins a new epoch, which fences the old owner's claims and results. `among` confines the look to routes that are
 * known to have work; null looks through all queues. Those that work come before those that failed.
 */
export async function acquireRoutes(
  db: Queryable,
  owner: { nodeId: number; leaseMs: number; lockClass: number },
  at: Date,
  { among, limit }: { among: string[] | null; limit: number },
): Promise<RouteRow[]> {
  const candidates = among
    ? `candidate as (select key, false as orphaned from unnest($6::text[]) key)`
    : `${heads}, ${claimed}, candidate as (
      select route as key, bool_or(orphaned) as orphaned from (
        select route, false as orphaned from heads where due_at <= $3 union all select route, true from claimed
      ) found group by route
    )`
  return await db.query<RouteRow>(
    `with recursive ${candidates}, free as (
      select r.key from candidate c join route r on r.key = c.key
      where (c.orphaned or (not r.paused and (r.not_before is null or r.not_before <= $3)))
        and (r.owner is null or r.lease_until < now() or (r.owner <> $1 and not exists (
          select from pg_locks l where ${isNodeLock} and l.classid = $4 and l.objid = r.owner)))
      order by r.failures, r.key limit $5 for update of r skip locked
    )
    update route r set owner = $1, epoch = r.epoch + 1, lease_until = now() + $2 * interval '1 ms'
    from free where r.key = free.key
    returning ${columns}`,
    [owner.nodeId, owner.leaseMs, at, owner.lockClass, limit, ...(among ? [among] : [])],
  )
}

/** Renews the leases that are still ours; a route that is missing from the answer has been lost. */
export async function renewRoutes(
  db: Queryable,
  nodeId: number,
  held: { key: string; epoch: number }[],
  leaseMs: number,
): Promise<RouteRow[]> {
  return await db.query<RouteRow>(
    `with ours as (
      select r.key from route r join unnest($2::text[], $3::bigint[]) as h(key, epoch) on r.key = h.key and r.epoch = h.epoch
      where r.owner = $1 order by r.key for no key update of r
    )
    update route r set lease_until = now() + $4 * interval '1 ms' from ours where r.key = ours.key
    returning ${columns}`,
    [nodeId, held.map(({ key }) => key), held.map(({ epoch }) => epoch), leaseMs],
  )
}

/** Gives a route up at once, so that another node need not wait for the lease to run out. */
export async function releaseRoute(
  db: Queryable,
  nodeId: number,
  { key, epoch }: { key: string; epoch: number },
): Promise<void> {
  await db.query(
    'update route set owner = null, lease_until = null where owner = $1 and key = $2 and epoch = $3',
    [nodeId, key, epoch],
  )
}

/** Notes a fault of the way there: the whole route waits. The only write while a destination is down. */
export async function backOffRoute(
  db: Queryable,
  route: { key: string; epoch: number },
  fault: { failures: number; notBefore: Date; text: string },
  at: Date,
): Promise<void> {
  await db.query(
    `update route set failures = $3, not_before = $4, last_fault = $5, last_fault_at = $6 where key = $1 and epoch = $2`,
    [route.key, route.epoch, fault.failures, fault.notBefore, fault.text, at],
  )
}

export async function clearBackOff(db: Queryable, route: { key: string; epoch: number }): Promise<void> {
  await db.query(
    `update route set failures = 0, not_before = null, last_fault = null where key = $1 and epoch = $2`,
    [route.key, route.epoch],
  )
}

/**
 * Gives back what an earlier owner had on the wire when it was lost. Whether the far side took it is unknown, so each
 * is tried again; the lost attempt keeps its number and its event.
 */
export async function reclaimOrphans(
  db: Queryable,
  route: { key: string; epoch: number },
  at: Date,
): Promise<number> {
  const [row] = await db.query<{ count: number }>('select reclaim_orphans($1, $2, $3) as count', [
    route.key,
    route.epoch,
    at,
  ])
  return row!.count
}

/** When the route's next delivery falls due, or null when none waits; what has outlived its time only waits to be ended. */
export async function nextDue(db: Queryable, key: string, at: Date): Promise<Date | null> {
  const [row] = await db.query<{ dueAt: Date | null }>(
    `with recursive o as (
      (select d.organization_id from delivery d where d.route = $1 and ${waiting} order by d.organization_id limit 1)
      union all
      select (select d.organization_id from delivery d where d.route = $1 and ${waiting} and d.organization_id > o.organization_id
        order by d.organization_id limit 1) from o where o.organization_id is not null
    )
    select min(first.due_at) as "dueAt" from o cross join lateral (
      select d.due_at from delivery d where d.route = $1 and d.organization_id = o.organization_id and ${waiting}
        and d.expires_at > $2
      order by d.due_at limit 1) first where o.organization_id is not null`,
    [key, at],
  )
  return row?.dueAt ?? null
}

export interface QueueRow extends RouteRow {
  owner: number | null
  waiting: number
  onWire: number
  oldestDueAt: Date | null
  lastFaultAt: Date | null
}

/** What operators see: every route where something waits, is paused or failed; or the one with `key`. */
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
    select ${columns}, r.owner, r.last_fault_at as "lastFaultAt", coalesce(n.waiting, 0)::integer as waiting,
      coalesce(n.on_wire, 0)::integer as "onWire", n.oldest as "oldestDueAt"
    from route r left join n on n.route = r.key
    where ($1::text is null and (n.route is not null or r.paused or r.last_fault is not null)) or r.key = $1
    order by n.waiting desc nulls last, r.key`,
    [key],
  )
}

export async function setPaused(tx: Tx, key: string, paused: 'paused' | 'running'): Promise<boolean> {
  const rows = await tx.query('update route set paused = $2 where key = $1 returning key', [
    key,
    paused === 'paused',
  ])
  return rows.length > 0
}

/** Makes everything that waits due at once, whatever its back-off; answers how much. Null: no such route. */
export async function flushRoute(tx: Tx, key: string, at: Date): Promise<number | null> {
  const routes = await tx.query(
    'update route set failures = 0, not_before = null where key = $1 returning key',
    [key],
  )
  if (routes.length === 0) return null
  const rows = await tx.query(
    `update delivery d set due_at = $2 where d.route = $1 and ${waiting} and d.due_at > $2 returning d.position`,
    [key, at],
  )
  return rows.length
}
