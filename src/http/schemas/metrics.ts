// Schemas of an organization's delivery metrics, and of a domain's traffic.
import Type from 'typebox'
import { Count, component, nullable, oneOf, Time, Uuid } from './scalars.ts'

const Fraction = Type.Number({ minimum: 0, maximum: 1 })

const delivered = Type.Integer({ minimum: 0, description: 'Recipients that the remote server took.' })
const bounced = Type.Integer({ minimum: 0, description: 'Recipients refused for good, or returned later.' })
const deferred = Type.Integer({ minimum: 0, description: 'Attempts that were put off.' })
const recipients = Type.Integer({ minimum: 0, description: 'Recipients of the accepted sends.' })

const outcomes = {
  accepted: Type.Integer({ minimum: 0, description: 'Sends accepted.' }),
  delivered,
  deferred,
  bounced,
  failed: Type.Integer({ minimum: 0, description: 'Recipients given up or cancelled.' }),
  complained: Type.Integer({ minimum: 0, description: 'Complaints of recipients.' }),
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
      windowHours: Type.Integer({ minimum: 1, maximum: 720, description: 'As it was asked for.' }),
      from: { ...Time, description: 'The window begins here, on a full hour (UTC).' },
      to: { ...Time, description: 'The time of the answer: the last hour is not complete.' },
      totals: Type.Object({
        ...outcomes,
        recipients,
        suppressed: Type.Integer({ minimum: 0, description: 'Recipients that were not attempted.' }),
      }),
      rates: Type.Object(
        {
          delivery: nullable({
            ...Fraction,
            description: 'Delivered, of the recipients that came to an end.',
          }),
          bounce: nullable({ ...Fraction, description: 'Bounced, of the same.' }),
          complaint: nullable({ ...Fraction, description: 'Complaints, of those delivered.' }),
        },
        { description: 'Fractions from 0 to 1, null where there is nothing to divide by.' },
      ),
      latencyMs: Type.Object(
        { p50: nullable(Count), p95: nullable(Count), p99: nullable(Count) },
        { description: 'From accepted to delivered, at most 9.1 % off; null where nothing was delivered.' },
      ),
      series: Type.Array(Type.Object({ at: Time, ...outcomes }), {
        description: 'By the hour; by the day (UTC) where the window is longer than 72 hours.',
      }),
      topDestinations: Type.Array(
        Type.Object({ domain: Type.String(), recipients, delivered, bounced, deferred }),
        { description: 'The ten domains that most recipients are at.' },
      ),
    },
    {
      description: 'What became of mail in a window of hours; each fact counts when it happened.',
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
        'Whether more can be sent: `limited` for now, `paused` not.',
      ),
      reasons: Type.Array(Type.String(), { description: 'Why it is not normal.' }),
      usage: Type.Object({
        sentLastMinute: Count,
        sentToday: { ...Count, description: 'Since 00:00 UTC, as the other two.' },
        recipientsToday: Count,
        receivedToday: Count,
        bounceRate24h: nullable(Fraction),
        complaintRate24h: nullable(Fraction),
      }),
      limits: Type.Object(
        { messagesPerMinute: Count, messagesPerDay: Count, recipientsPerDay: Count },
        { description: "The organization's: all its domains and inboxes share them." },
      ),
    },
    { description: 'What a domain sends and receives.', examples: [trafficExample] },
  ),
)

export const metricsComponents = [DeliveryMetrics, DomainTraffic]
