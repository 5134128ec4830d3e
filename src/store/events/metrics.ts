// Metrics: roll-ups and the deltas that are not yet folded into them. Together they are exact at any moment.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable, Writer } from '../../postgres/db.ts'
import type { Limits } from '../accounts/organizations.ts'
import type { DueCondition } from '../due.ts'

/** How often each fact happened: accepted sends, received messages, and results of recipients. */
export interface Counts {
  accepted: number
  recipients: number
  delivered: number
  deferred: number
  bounced: number
  failed: number
  cancelled: number
  suppressed: number
  complained: number
  received: number
}

const facts = [
  'accepted',
  'recipients',
  'delivered',
  'deferred',
  'bounced',
  'failed',
  'cancelled',
  'suppressed',
  'complained',
  'received',
] as const satisfies readonly (keyof Counts)[]

/** A time range that is read from roll-ups of one grain: from `from`, and before `until`. */
export interface Stretch {
  grain: 'second' | 'hour' | 'day'
  from: Date
  until: Date
}

/**
 * `total`: counts of an hour or day, folded or not, in no order. `latencies` are counts by bucket, separated by commas.
 * `destination`: the ten domains with the most mail.
 */
export interface DeliveryMetricRow extends Counts {
  kind: 'total' | 'destination'
  at: Date | null
  name: string
  latencies: string | null
}

const columns = facts.map((fact) => `m.${fact}`).join(', ')
const spread = facts
  .map((fact) => `case when c.fact = '${fact}' then c.amount else 0 end as ${fact}`)
  .join(', ')
const sums = facts.map((fact) => `coalesce(sum(m.${fact}), 0) as ${fact}`).join(', ')

/** Rows of `metric`, folded or not, of the organization $1 and a kind, in the time ranges $2 to $4. */
const stretches = `stretch as (
    select * from unnest($2::text[], $3::timestamptz[], $4::timestamptz[]) as s(grain, since, until)
  )`
const folded = (kind: string) => `stretch s join metric m on m.organization_id = $1 and m.kind = '${kind}'
  and m.grain = s.grain and m.at >= s.since and m.at < s.until`
const unfolded = `metric_delta d cross join lateral spread_counts(d.at, d.counts) c
  join stretch s on c.grain = s.grain and c.at >= s.since and c.at < s.until
  where d.organization_id = $1`

/** Reads the rows for the organization's delivery metrics, in one snapshot. */
export async function readDeliveryMetrics(
  db: Queryable,
  organizationId: OrganizationId,
  within: Stretch[],
): Promise<DeliveryMetricRow[]> {
  return await db.query<DeliveryMetricRow>(
    `with ${stretches}, fresh as materialized (
      select c.* from ${unfolded}
    ), sent as (
      select m.name, m.recipients, m.delivered, m.deferred, m.bounced from ${folded('destination')}
      union all
      select n.name, n.recipients, n.delivered, n.deferred, n.bounced
      from (select c.name, ${spread} from fresh c where c.kind = 'destination') n
    )
    select 'total' as kind, m.at, '' as name, ${columns}, array_to_string(m.latencies, ',') as latencies
    from ${folded('total')}
    union all
    select 'total', m.at, '', ${sums}, array_to_string(histogram(array_agg(m.latency), array_agg(m.delivered)), ',')
    from (select c.at, c.latency, ${spread} from fresh c where c.kind = 'total') m group by m.at
    union all
    (select 'destination', null, name, 0, sum(recipients), sum(delivered), sum(deferred), sum(bounced), 0, 0, 0, 0, 0, null
    from sent group by name
    order by sum(recipients) desc, sum(delivered) + sum(deferred) + sum(bounced) desc, name limit 10)`,
    [organizationId, ...arraysOf(within)],
  )
}

/**
 * Counts the mail that one of the organization's own domains has sent and received. Returns one row per grain and start.
 */
export async function readDomainMetrics(
  db: Queryable,
  organizationId: OrganizationId,
  domain: string,
  within: Stretch[],
): Promise<(Counts & { grain: Stretch['grain']; at: Date })[]> {
  return await db.query(
    `with ${stretches}
    select m.grain, m.at, ${sums} from (
      select m.grain, m.at, ${columns} from ${folded('own')} and m.name = $5
      union all
      select c.grain, c.at, ${spread} from ${unfolded} and c.kind = 'own' and c.name = $5
    ) m group by m.grain, m.at`,
    [organizationId, ...arraysOf(within), domain],
  )
}

/** Reads the current use of the organization's volume limits, by the limits' names. */
export async function readUsage(
  db: Queryable,
  organizationId: OrganizationId,
  at: Date,
): Promise<Pick<Limits, 'messagesPerMinute' | 'messagesPerDay' | 'recipientsPerDay'>> {
  const [row] = await db.query<Limits>(
    `select case when is_running(minute_started_at, $2) then minute_messages else 0 end as "messagesPerMinute",
      case when day = ($2 at time zone 'UTC')::date then day_messages else 0 end as "messagesPerDay",
      case when day = ($2 at time zone 'UTC')::date then day_recipients else 0 end as "recipientsPerDay"
    from usage where organization_id = $1`,
    [organizationId, at],
  )
  return row!
}

function arraysOf(within: Stretch[]): unknown[] {
  return [within.map(({ grain }) => grain), within.map(({ from }) => from), within.map(({ until }) => until)]
}

/** Holds if there are deltas, or roll-ups of a grain that began longer ago than its period. */
export function metricsDue(keptMs: Record<Stretch['grain'], number>): DueCondition {
  const old = Object.entries(keptMs).map(
    ([grain, ms]) =>
      `exists (select from metric where grain = '${grain}' and at < asked.at - interval '${ms} ms')`,
  )
  return `(${['exists (select from metric_delta)', ...old].join(' or ')})`
}

/** Folds up to `wanted` deltas into the roll-ups; returns how many. */
export async function foldDeltas(
  db: Writer,
  { wanted, maxDestinations }: { wanted: number; maxDestinations: number },
): Promise<number> {
  const [row] = await db.query<{ folded: number }>('select fold_metrics($1, $2) as folded', [
    wanted,
    maxDestinations,
  ])
  return row!.folded
}

/** Deletes up to `limit` roll-ups of a grain that began before `until`; returns how many. */
export async function deleteRollUps(
  db: Writer,
  grain: Stretch['grain'],
  until: Date,
  limit: number,
): Promise<number> {
  const rows = await db.query(
    // By ctid, because a join by key could be planned by the hour alone, which the rows of all organizations share.
    `delete from metric where ctid = any(array(
      select ctid from metric where grain = $1 and at < $2 order by at limit $3)) returning kind`,
    [grain, until, limit],
  )
  return rows.length
}
