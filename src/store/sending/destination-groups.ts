// The limits of destination groups, and the nodes that share them.
import type { Queryable, Writer } from '../../postgres/db.ts'

/** Messages that were sent in steps of a period. */
export type StepCounts = [step: number, count: number][]

export interface GroupRow {
  name: string
  connections: number
  perMinute: number | null
  perHour: number | null
  pausedUntil: Date | null
  refusals: number
  refusedFirst: Date | null
  refusedAt: Date | null
  reason: string | null
  /** By the length of the period in milliseconds. */
  sent: Record<string, StepCounts>
  changedAt: Date
}

const columns = `g.name, g.connections, g.per_minute as "perMinute", g.per_hour as "perHour",
  g.paused_until as "pausedUntil", g.refusals, g.refused_first as "refusedFirst", g.refused_at as "refusedAt", g.reason,
  g.sent, g.changed_at as "changedAt"`

export async function findGroups(db: Queryable, names: readonly string[]): Promise<GroupRow[]> {
  return await db.query<GroupRow>(`select ${columns} from destination_group g where g.name = any($1)`, [
    names,
  ])
}

/** Notes that the node sends to these groups. Returns the numbers of all living nodes that do, in order, by group. */
export async function joinGroups(
  db: Writer,
  nodeId: number,
  names: readonly string[],
): Promise<{ name: string; nodes: number[] }[]> {
  return await db.query<{ name: string; nodes: number[] }>(
    `with mine as (
      insert into destination_group_node (name, node) select name, $1 from unnest($2::text[]) name order by name
      on conflict do nothing
    )
    select asked.name, array(
      select u.node::integer from destination_group_node u
      where u.name = asked.name and u.node = any(living_nodes())
      union select $1::integer order by 1) as nodes
    from unnest($2::text[]) asked(name)`,
    [nodeId, names],
  )
}

/** Notes that the node sends to these groups no more. */
export async function leaveGroups(db: Writer, nodeId: number, names: readonly string[]): Promise<void> {
  await db.query('delete from destination_group_node where node = $1 and name = any($2)', [nodeId, names])
}

/** Stores the groups. If two nodes write, the later one wins, but the longer pause stays. */
export async function saveGroups(db: Writer, rows: readonly GroupRow[]): Promise<void> {
  await db.query(
    `insert into destination_group as g
      (name, connections, per_minute, per_hour, paused_until, refusals, refused_first, refused_at, reason, sent, changed_at)
    select r.name, r.connections, r."perMinute", r."perHour", r."pausedUntil", r.refusals, r."refusedFirst", r."refusedAt",
      r.reason, r.sent, r."changedAt"
    from jsonb_to_recordset($1::jsonb) as r(name text, connections integer, "perMinute" integer, "perHour" integer,
      "pausedUntil" timestamptz, refusals integer, "refusedFirst" timestamptz, "refusedAt" timestamptz, reason text,
      sent jsonb, "changedAt" timestamptz)
    order by r.name
    on conflict (name) do update set connections = excluded.connections, per_minute = excluded.per_minute,
      per_hour = excluded.per_hour, paused_until = greatest(g.paused_until, excluded.paused_until),
      refusals = excluded.refusals, refused_first = excluded.refused_first, refused_at = excluded.refused_at,
      reason = excluded.reason, sent = excluded.sent, changed_at = excluded.changed_at`,
    [JSON.stringify(rows)],
  )
}

/** Notes the groups of queues, for operators. */
export async function noteGroupsOfRoutes(
  db: Writer,
  pairs: readonly { route: string; name: string }[],
): Promise<void> {
  await db.query(
    `update route r set destination_group = n.name from unnest($1::text[], $2::text[]) n(route, name)
    where r.key = n.route and r.destination_group is distinct from n.name`,
    [pairs.map(({ route }) => route), pairs.map(({ name }) => name)],
  )
}

/** Deletes up to `limit` groups that did not change since `before`, and the notes of nodes that are gone. */
export async function deleteUnusedGroups(db: Writer, before: Date, limit: number): Promise<boolean> {
  const rows = await db.query(
    `with gone as (
      delete from destination_group_node where (name, node) in (
        select name, node from destination_group_node where node <> all(living_nodes()) limit $2)
    )
    delete from destination_group where name in (
      select name from destination_group where changed_at < $1 limit $2) returning 1`,
    [before, limit],
  )
  return rows.length >= limit
}
