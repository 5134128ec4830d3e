// Schemas of an organization's delivery metrics, and of a domain's traffic.
import Type from 'typebox'
import { SendLimits } from './profile.ts'
import { Count, component, nullable, oneOf, Time, Uuid } from './scalars.ts'

const Fraction = Type.Number({ minimum: 0, maximum: 1 })

const delivered = Type.Integer({ minimum: 0, description: 'Recipients whose server accepted it.' })
const bounced = Type.Integer({
  minimum: 0,
  description: 'Recipients refused permanently, or returned later.',
})
const deferred = Type.Integer({ minimum: 0, description: 'Attempts that were deferred.' })
const recipients = Type.Integer({ minimum: 0, description: 'Recipients of the accepted sends.' })

const outcomes = {
  accepted: Type.Integer({ minimum: 0, description: 'Sends accepted.' }),
  delivered,
  deferred,
  bounced,
  failed: Type.Integer({ minimum: 0, description: 'Recipients failed or cancelled.' }),
  complained: Type.Integer({ minimum: 0, description: 'Complaints from recipients.' }),
  received: Type.Integer({ minimum: 0, description: 'Messages received.' }),
}

const counts = { accepted: 12, delivered: 11, deferred: 1, bounced: 1, failed: 0, complained: 0, received: 7 }

const metricsExample = {
  windowHours: 1,
  from: '2026-11-21T09:00:00.000Z',
  to: '2026-11-21T09:42:07.215Z',
  totals: { ...counts, recipients: 12, suppressed: 0 },
  rates: { delivery: 0.9166, bounce: 0.0833, complaint: 0 },
  latencyMs: { p50: 362, p95: 861, p99: 1024 },
  series: [{ at: '2026-11-21T09:00:00.000Z', ...counts }],
  topDestinations: [{ domain: 'example.com', recipients: 12, delivered: 11, bounced: 1, deferred: 1 }],
}

export const DeliveryMetrics = component(
  'DeliveryMetrics',
  Type.Object(
    {
      windowHours: Type.Integer({ minimum: 1, maximum: 720, description: 'The requested window.' }),
      from: { ...Time, description: 'Start of the window, on a full hour (UTC).' },
      to: { ...Time, description: 'The time of the response. The last hour is incomplete.' },
      totals: Type.Object({
        ...outcomes,
        recipients,
        suppressed: Type.Integer({
          minimum: 0,
          description: 'Recipients skipped as suppressed.',
        }),
      }),
      rates: Type.Object(
        {
          delivery: nullable({
            ...Fraction,
            description: 'Delivered share of completed recipients.',
          }),
          bounce: nullable({ ...Fraction, description: 'Bounced share of them.' }),
          complaint: nullable({ ...Fraction, description: 'Complaints per delivered recipient.' }),
        },
        { description: 'Fractions from 0 to 1. Null if the denominator is 0.' },
      ),
      latencyMs: Type.Object(
        { p50: nullable(Count), p95: nullable(Count), p99: nullable(Count) },
        { description: 'Time from accepted to delivered, at most 9.1 % off. Null if nothing was delivered.' },
      ),
      series: Type.Array(Type.Object({ at: Time, ...outcomes }), {
        description: 'Per hour, or per day (UTC) if the window is longer than 72 hours.',
      }),
      topDestinations: Type.Array(
        Type.Object({ domain: Type.String(), recipients, delivered, bounced, deferred }),
        { description: 'The ten domains with the most recipients.' },
      ),
    },
    {
      description: 'Delivery counts in a window of hours. Each event counts at the time it happened.',
      examples: [metricsExample],
    },
  ),
)

const trafficExample = {
  domainId: '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d',
  domain: 'example.net',
  status: 'normal',
  reasons: [],
  usage: {
    sentLastMinute: 3,
    sentToday: 410,
    recipientsToday: 512,
    receivedToday: 36,
    bounceRate24h: 0.004,
    complaintRate24h: 0,
  },
  limits: { messagesPerMinute: 60, messagesPerDay: 2000, recipientsPerDay: 5000 },
}

export const DomainTraffic = component(
  'DomainTraffic',
  Type.Object(
    {
      domainId: Uuid,
      domain: Type.String(),
      status: oneOf(
        ['normal', 'limited', 'paused'],
        '`limited`: cannot send for now. `paused`: cannot send.',
      ),
      reasons: Type.Array(Type.String(), { description: 'Why it is not `normal`.' }),
      usage: Type.Object({
        sentLastMinute: Count,
        sentToday: {
          ...Count,
          description: 'Since 00:00 UTC, like the next two.',
        },
        recipientsToday: Count,
        receivedToday: Count,
        bounceRate24h: nullable(Fraction),
        complaintRate24h: nullable(Fraction),
      }),
      limits: {
        ...SendLimits,
        description: "The organization's limits, which all its domains and inboxes share.",
      },
    },
    { description: 'Mail that a domain sends and receives.', examples: [trafficExample] },
  ),
)

export const metricsComponents = [DeliveryMetrics, DomainTraffic]
