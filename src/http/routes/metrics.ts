// Metrics: the organization's delivery results, and the traffic of one of its domains.
import type { FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { ServiceError } from '../../base/errors.ts'
import { requireWholeOrganization } from '../../flow/caller.ts'
import { readMetrics, readTraffic } from '../../flow/metrics/read-metrics.ts'
import { findDomain } from '../../store/domains/domains.ts'
import type { Api, HttpDeps } from '../api.ts'
import { DeliveryMetrics, DomainTraffic } from '../schemas/metrics.ts'
import { Nothing, Uuid } from '../schemas/scalars.ts'

export function metricsRoutes(api: Api, deps: HttpDeps): void {
  addDelivery(api, deps)
  addTraffic(api, deps)
}

const defaultHours = 24
const MetricsQuery = Type.Object(
  {
    hours: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 720,
        default: defaultHours,
        description: 'The number of hours, including the current hour.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** Converts `hours` to a number if it is plain digits. Other values stay text, which the schema refuses. */
async function readHours(request: FastifyRequest): Promise<void> {
  const query = request.query as { hours?: unknown }
  if (typeof query.hours === 'string' && /^(?:0|[1-9]\d{0,8})$/.test(query.hours))
    query.hours = Number(query.hours)
}

function addDelivery(api: Api, { clock }: HttpDeps): void {
  api.get(
    '/v1/metrics/delivery',
    {
      preValidation: readHours,
      config: { scope: 'delivery:read', refusals: ['inbox_not_allowed'] },
      schema: {
        operationId: 'getDeliveryMetrics',
        tags: ['Metrics'],
        summary: 'Show delivery metrics',
        description: 'Metrics of the whole organization for the last hours.',
        querystring: MetricsQuery,
        response: { 200: DeliveryMetrics.ref },
      },
    },
    async ({ caller, query, db }) => {
      requireWholeOrganization(caller)
      return presentMetrics(
        await readMetrics({ db, clock }, caller.organizationId, query.hours ?? defaultHours),
      )
    },
  )
}

function addTraffic(api: Api, { clock }: HttpDeps): void {
  api.get(
    '/v1/domains/:domainId/traffic',
    {
      config: { scope: 'domain:manage', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'getDomainTraffic',
        tags: ['Domains'],
        summary: 'Show the traffic of a domain',
        description: 'Its sent and received mail, and whether it can send more.',
        params: Type.Object({ domainId: Uuid }),
        querystring: Nothing,
        response: { 200: DomainTraffic.ref },
      },
    },
    async ({ caller, params, db }) => {
      // Check the resource first, then the restrictions of the key.
      const domain = await findDomain(db, caller.organizationId, params.domainId)
      if (!domain) throw new ServiceError('not_found', 'There is no such domain.')
      requireWholeOrganization(caller)
      const { messagesPerMinute, messagesPerDay, recipientsPerDay } = caller.limits
      return {
        domainId: domain.id,
        domain: domain.name,
        ...(await readTraffic({ db, clock }, domain, caller.limits)),
        limits: { messagesPerMinute, messagesPerDay, recipientsPerDay },
      }
    },
  )
}

type Metrics = Awaited<ReturnType<typeof readMetrics>>
type Outcomes = Metrics['totals']

function presentMetrics(metrics: Metrics): Static<(typeof DeliveryMetrics)['definition']> {
  const { window, totals, rates, latencyMs, series, topDestinations } = metrics
  const { recipients, suppressed } = totals
  return {
    windowHours: window.hours,
    from: window.from.toISOString(),
    to: window.to.toISOString(),
    totals: { ...presentOutcomes(totals), recipients, suppressed },
    rates,
    latencyMs,
    series: series.map(({ at, ...counts }) => ({ at: at.toISOString(), ...presentOutcomes(counts) })),
    topDestinations: topDestinations.map(
      ({ domain, counts: { recipients, delivered, bounced, deferred } }) => {
        return { domain, recipients, delivered, bounced, deferred }
      },
    ),
  }
}

/** Counts cancelled recipients as failed, because the API shows their state as `failed`. */
function presentOutcomes({
  accepted,
  delivered,
  deferred,
  bounced,
  failed,
  cancelled,
  complained,
  received,
}: Outcomes) {
  return { accepted, delivered, deferred, bounced, failed: failed + cancelled, complained, received }
}
