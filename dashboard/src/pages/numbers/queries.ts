// The API queries of the numbers page, and the figures computed from the answers.
import { queryOptions } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'

export type Metrics = Schemas['DeliveryMetrics']
export type Fact = 'accepted' | 'delivered' | 'deferred' | 'bounced' | 'failed' | 'complained' | 'received'
export type Span = '24' | '168' | '720'

export const facts: readonly Fact[] = [
  ...(['accepted', 'delivered', 'bounced', 'failed', 'deferred', 'complained', 'received'] as const),
]
const refreshMs = 60_000
/** The longest window of the API. */
const mostHours = 720

export const metricsQuery = (span: Span) =>
  queryOptions({
    queryKey: ['metrics', span],
    refetchInterval: refreshMs,
    queryFn: () => readPair(Number(span)),
  })

export interface Told {
  now: Metrics
  /** The count of each fact in the previous window of the same length. Null if the API does not have it. */
  before: Record<Fact, number> | null
}

/** A window of twice the length minus the window gives the previous one. Both must end with the same hour. */
async function readPair(hours: number): Promise<Told> {
  const ask = (count: number) =>
    read(api.GET('/v1/metrics/delivery', { params: { query: { hours: count } } }))
  if (hours * 2 > mostHours) return { now: await ask(hours), before: null }
  const [now, both] = await Promise.all([ask(hours), ask(hours * 2)])
  return { now, before: currentHour(now) === currentHour(both) ? less(both.totals, now.totals) : null }
}

const hourMs = 3_600_000

/** Returns the start of a window's last hour. */
function currentHour({ from, windowHours }: Metrics): number {
  return Date.parse(from) + (windowHours - 1) * hourMs
}

function less(both: Metrics['totals'], now: Metrics['totals']): Record<Fact, number> {
  const entries = facts.map((fact) => [fact, Math.max(0, both[fact] - now[fact])])
  return Object.fromEntries(entries) as Record<Fact, number>
}

export const usageQuery = queryOptions({
  queryKey: ['usage'],
  refetchInterval: refreshMs,
  queryFn: () => read(api.GET('/v1/usage')),
})

export const domainsQuery = (limit: number) =>
  queryOptions({
    queryKey: ['numbers', 'domains', limit],
    queryFn: () => read(api.GET('/v1/domains', { params: { query: { limit } } })),
  })

export const trafficQuery = (domainId: string) =>
  queryOptions({
    queryKey: ['numbers', 'traffic', domainId],
    queryFn: () => read(api.GET('/v1/domains/{domainId}/traffic', { params: { path: { domainId } } })),
  })
