// Schemas of webhook endpoints, and of the calls made to them.
import Type from 'typebox'
import { eventTypes } from '../../store/events/outbox.ts'
import { component, NextCursor, nullable, oneOf, patterned, Time, Uuid, WebhookIdText } from './scalars.ts'

/** A type of event of webhooks and of the stream. */
export const EventTypeName = {
  type: 'string',
  enum: [...eventTypes],
  description: 'An event type.',
  examples: ['message.received'],
}

export const WebhookStatus = {
  ...oneOf(['active', 'disabled'], 'A disabled endpoint is not called.'),
  examples: ['active'],
}

export const WebhookParams = Type.Object({
  webhookId: WebhookIdText,
})
export const WebhookDeliveryParams = Type.Object({
  webhookId: WebhookIdText,
  deliveryId: Uuid,
})

const webhookExample = {
  id: 'whk_0199a1b23c4d5e6f708192a3',
  url: 'https://app.example.com/hooks/mail',
  eventTypes: ['message.received', 'message.bounced'],
  description: 'Production',
  status: 'active',
  createdAt: '2026-11-21T09:00:00.000Z',
  updatedAt: '2026-11-21T09:00:00.000Z',
}

const visible = {
  id: WebhookIdText,
  url: Type.String({ format: 'uri', description: 'The URL to call.' }),
  eventTypes: Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: EventTypeName,
    description: 'The subscribed event types. Null: all, including future types.',
  }),
  description: nullable(Type.String({ description: 'Your own note.' })),
  status: WebhookStatus,
  createdAt: Time,
  updatedAt: Time,
}
const secret = Type.String({
  description: 'Signs every call (Standard Webhooks). Shown only once.',
})
const secretExample = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='

export const Webhook = component(
  'Webhook',
  Type.Object(visible, { description: 'A webhook endpoint.', examples: [webhookExample] }),
)

export const WebhookWithSecret = component(
  'WebhookWithSecret',
  Type.Object(
    { ...visible, secret },
    {
      description: 'A webhook endpoint with its new secret.',
      examples: [{ ...webhookExample, secret: secretExample }],
    },
  ),
)

export const WebhookList = component(
  'WebhookList',
  Type.Object(
    { webhooks: Type.Array(Webhook.ref), nextCursor: NextCursor },
    {
      description: 'Endpoints, newest first.',
      examples: [{ webhooks: [webhookExample], nextCursor: null }],
    },
  ),
)

const given = {
  url: patterned('url', {
    format: 'uri',
    minLength: 1,
    maxLength: 2048,
    description:
      'An https URL of a public host, on no port of another protocol. In development also http on a loopback address. Names in ASCII: internationalized ones as A-labels.',
  }),
  eventTypes: Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: EventTypeName,
    minItems: 1,
    maxItems: eventTypes.length,
    uniqueItems: true,
    description: 'The subscribed event types. Null or omitted: all, including future types.',
    examples: [['message.received']],
  }),
  description: nullable(patterned('oneLine', { maxLength: 200, description: 'Your own note.' })),
}

export const NewWebhook = component(
  'NewWebhook',
  Type.Object(
    {
      url: given.url,
      eventTypes: Type.Optional(given.eventTypes),
      description: Type.Optional(given.description),
    },
    {
      additionalProperties: false,
      description: 'The endpoint to create.',
      examples: [{ url: 'https://app.example.com/hooks/mail', eventTypes: ['message.received'] }],
    },
  ),
)

export const WebhookChange = component(
  'WebhookChange',
  Type.Object(
    {
      url: Type.Optional(given.url),
      eventTypes: Type.Optional(given.eventTypes),
      description: Type.Optional(given.description),
      status: Type.Optional(WebhookStatus),
    },
    {
      additionalProperties: false,
      description: 'The fields to change. Omitted fields stay unchanged.',
      examples: [{ status: 'active' }],
    },
  ),
)

const deliveryExample = {
  id: '0199a1b2-7f80-7123-8abc-5d6e7f8091a2',
  webhookId: 'whk_0199a1b23c4d5e6f708192a3',
  eventId: '0199a1b2-6f70-7192-a3b4-4f5a6b7c8d9e',
  type: 'message.received',
  status: 'pending',
  attempts: 1,
  lastAttemptAt: '2026-11-21T09:00:01.250Z',
  nextAttemptAt: '2026-11-21T09:00:06.400Z',
  request: {
    url: 'https://app.example.com/hooks/mail',
    timestamp: '2026-11-21T09:00:01.250Z',
    sizeBytes: 2310,
  },
  responseStatus: 503,
  responseBody: 'try later',
  error: 'the receiver answered 503',
  createdAt: '2026-11-21T09:00:01.200Z',
}

const CallRequest = Type.Unsafe<{ url: string; timestamp: string; sizeBytes: number } | null>({
  type: ['object', 'null'],
  description: 'The request of the last attempt: URL, time, and size of the body.',
  properties: {
    url: { type: 'string' },
    timestamp: { type: 'string', format: 'date-time' },
    sizeBytes: { type: 'integer' },
  },
})

export const WebhookDelivery = component(
  'WebhookDelivery',
  Type.Object(
    {
      id: Uuid,
      webhookId: WebhookIdText,
      eventId: Type.String({
        format: 'uuid',
        description: 'The webhook-id of the calls, the same for every retry.',
      }),
      type: oneOf([...eventTypes, 'webhook.test'], 'The event type.'),
      status: oneOf(
        ['pending', 'succeeded', 'failed'],
        '`pending`: waiting for its first call or for a retry.',
      ),
      attempts: Type.Integer({ minimum: 0, description: 'The number of attempts.' }),
      lastAttemptAt: nullable(Time),
      nextAttemptAt: nullable({
        ...Time,
        description: 'Time of the next attempt. Null: none, or as soon as possible.',
      }),
      request: CallRequest,
      responseStatus: nullable(Type.Integer({ description: 'The HTTP status of the last response.' })),
      responseBody: nullable(Type.String({ description: 'The first 2 KiB of it.' })),
      error: nullable(Type.String({ description: 'Why the last attempt failed.' })),
      createdAt: Time,
    },
    { description: 'An event for an endpoint.', examples: [deliveryExample] },
  ),
)

export const WebhookDeliveryList = component(
  'WebhookDeliveryList',
  Type.Object(
    { deliveries: Type.Array(WebhookDelivery.ref), nextCursor: NextCursor },
    {
      description: 'Deliveries of the last 30 days, newest first.',
      examples: [{ deliveries: [deliveryExample], nextCursor: null }],
    },
  ),
)

export const webhookComponents = [
  ...[Webhook, WebhookWithSecret, WebhookList, NewWebhook, WebhookChange, WebhookDelivery],
  WebhookDeliveryList,
]
