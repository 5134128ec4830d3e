// Reads metrics: an organization's deliveries over a window of hours, and the traffic of one of its domains.
import type { Clock } from '../../base/clock.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import type { Limits } from '../../store/accounts/organizations.ts'
import type { DomainRow } from '../../store/domains/domains.ts'
import {
  type Counts,
  type DeliveryMetricRow,
  readDeliveryMetrics,
  readDomainMetrics,
  readUsage,
  type Stretch,
} from '../../store/events/metrics.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
/** Longer windows are shown by day. */
const maxHourly = 72
const bucketsPerDoubling = 4

/** A window of hours (UTC), the last of which is the current one. */
interface Window {
  hours: number
  from: Date
  /** Now. */
  to: Date
  /** The end of the current hour. */
  until: Date
}

interface SeriesEntry extends Counts {
  at: Date
}

export interface DeliveryMetrics {
  window: Window
  totals: Counts
  rates: Rates
  latencyMs: Record<'p50' | 'p95' | 'p99', number | null>
  series: SeriesEntry[]
  topDestinations: { domain: string; counts: Counts }[]
}

interface Rates {
  delivery: number | null
  bounce: number | null
  complaint: number | null
}

export async function readMetrics(
  { db, clock }: { db: Queryable; clock: Clock },
  organizationId: OrganizationId,
  hours: number,
): Promise<DeliveryMetrics> {
  const window = windowOf(clock.nowMs(), hours)
  const rows = await readDeliveryMetrics(db, organizationId, stretchesOf(window))
  const ofKind = (kind: DeliveryMetricRow['kind']) => rows.filter((row) => row.kind === kind)
  const ofTime = ofKind('total')
  const totals = sum(ofTime)
  return {
    window,
    totals,
    rates: ratesOf(totals),
    latencyMs: percentilesOf(sumLatencies(ofTime)),
    series: seriesOf(window, ofTime),
    topDestinations: ofKind('destination').map((counts) => ({ domain: counts.name, counts })),
  }
}

export function windowOf(nowMs: number, hours: number): Window {
  const untilMs = (Math.floor(nowMs / hourMs) + 1) * hourMs
  return { hours, from: new Date(untilMs - hours * hourMs), to: new Date(nowMs), until: new Date(untilMs) }
}

function isHourly({ hours }: Window): boolean {
  return hours <= maxHourly
}

function nextMidnightMs(ms: number): number {
  return Math.ceil(ms / dayMs) * dayMs
}

/** Hours for a short window. A long window has hours up to the first midnight, and days after that. */
function stretchesOf(window: Window): Stretch[] {
  const { from, until } = window
  if (isHourly(window)) return [{ grain: 'hour', from, until }]
  const midnight = new Date(nextMidnightMs(from.getTime()))
  return [
    { grain: 'hour', from, until: midnight },
    { grain: 'day', from: midnight, until },
  ]
}

/** Every hour or day of the window, even without events. The first day begins with the window. */
function seriesOf(window: Window, rows: DeliveryMetricRow[]): SeriesEntry[] {
  const untilMs = window.until.getTime()
  const entries: SeriesEntry[] = []
  for (let atMs = window.from.getTime(); atMs < untilMs; ) {
    const endMs = isHourly(window) ? atMs + hourMs : nextMidnightMs(atMs + 1)
    const within = rows.filter(({ at }) => at!.getTime() >= atMs && at!.getTime() < endMs)
    entries.push({ at: new Date(atMs), ...sum(within) })
    atMs = endMs
  }
  return entries
}

const none: Counts = {
  accepted: 0,
  recipients: 0,
  delivered: 0,
  deferred: 0,
  bounced: 0,
  failed: 0,
  cancelled: 0,
  suppressed: 0,
  complained: 0,
  received: 0,
}

function sum(rows: Counts[]): Counts {
  const total = { ...none }
  for (const fact of Object.keys(none) as (keyof Counts)[]) for (const row of rows) total[fact] += row[fact]
  return total
}

/**
 * The shares of delivered and bounced recipients among those that ended, and of complaints among the delivered. Recipients
 * that the customer cancelled do not count.
 */
function ratesOf({ delivered, bounced, failed, complained }: Counts): Rates {
  const ended = delivered + bounced + failed
  return {
    delivery: share(delivered, ended),
    bounce: share(bounced, ended),
    // Complaints may be about mail that was delivered before the window.
    complaint: share(Math.min(complained, delivered), delivered),
  }
}

function share(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null
}

/** The number of deliveries in each latency bucket. */
function sumLatencies(rows: DeliveryMetricRow[]): number[] {
  const total: number[] = []
  for (const { latencies } of rows)
    for (const [bucket, count] of (latencies?.split(',') ?? []).entries())
      total[bucket] = (total[bucket] ?? 0) + Number(count)
  return total
}

/** Percentiles from counts by bucket: the logarithmic middle of the bucket that holds the value. At most 9.1 % off. */
export function percentilesOf(counts: number[]): DeliveryMetrics['latencyMs'] {
  const all = counts.reduce((sum, count) => sum + count, 0)
  const at = (fraction: number) => {
    let left = Math.ceil(fraction * all)
    const bucket = counts.findIndex((count) => (left -= count) <= 0)
    return Math.round(2 ** ((bucket + 0.5) / bucketsPerDoubling))
  }
  if (all === 0) return { p50: null, p95: null, p99: null }
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

export interface Traffic {
  status: 'normal' | 'limited' | 'paused'
  reasons: string[]
  usage: {
    sentLastMinute: number
    sentToday: number
    recipientsToday: number
    receivedToday: number
    bounceRate24h: number | null
    complaintRate24h: number | null
  }
}

/** How much mail a domain sent and received, and if it may send more by its organization's limits for all domains. */
export async function readTraffic(
  { db, clock }: { db: Queryable; clock: Clock },
  domain: Pick<DomainRow, 'organizationId' | 'name' | 'outbound' | 'standing'>,
  limits: Limits,
): Promise<Traffic> {
  const nowMs = clock.nowMs()
  const { from, until } = windowOf(nowMs, 24)
  const stretches: Stretch[] = [
    { grain: 'hour', from, until },
    { grain: 'second', from: new Date(nowMs - minuteMs), until: new Date(nowMs + minuteMs) },
  ]
  const rows = await readDomainMetrics(db, domain.organizationId, domain.name, stretches)
  const reasons = await reasonsOf(db, domain, limits, new Date(nowMs))
  const hours = rows.filter(({ grain }) => grain === 'hour')
  const midnightMs = Math.floor(nowMs / dayMs) * dayMs
  const today = sum(hours.filter(({ at }) => at.getTime() >= midnightMs))
  const { bounce, complaint } = ratesOf(sum(hours))
  return {
    ...reasons,
    usage: {
      sentLastMinute: sum(rows.filter(({ grain }) => grain === 'second')).accepted,
      sentToday: today.accepted,
      recipientsToday: today.recipients,
      receivedToday: today.received,
      bounceRate24h: bounce,
      complaintRate24h: complaint,
    },
  }
}

async function reasonsOf(
  db: Queryable,
  { organizationId, outbound, standing }: Pick<DomainRow, 'organizationId' | 'outbound' | 'standing'>,
  limits: Limits,
  at: Date,
): Promise<Pick<Traffic, 'status' | 'reasons'>> {
  if (outbound !== 'verified') {
    const reason = `Nothing can be sent from this domain: its outbound capability is ${outbound}.`
    return { status: 'paused', reasons: [reason, ...standing.outbound.reasons] }
  }
  const used = await readUsage(db, organizationId, at)
  const reasons = (['messagesPerMinute', 'messagesPerDay', 'recipientsPerDay'] as const)
    .filter((limit) => used[limit] >= limits[limit])
    .map((limit) => `The organization has used up its limit ${limit}: ${used[limit]} of ${limits[limit]}.`)
  return { status: reasons.length > 0 ? 'limited' : 'normal', reasons }
}
