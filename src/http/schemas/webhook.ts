// Schemas of webhook endpoints, and of the calls made to them.
import Type from 'typebox'
import { eventTypes } from '../../store/events/outbox.ts'
import { component, NextCursor, nullable, oneOf, patterned, Time, Uuid, WebhookIdText } from './scalars.ts'

/** A type of event of webhooks and of the stream. */
export const EventTypeName = {
  type: 'string',
  enum: [...eventTypes],
  description: 'What has happened.',
  examples: ['message.received'],
}

const statuses = ['active', 'disabled'] as const

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
  url: Type.String({ format: 'uri', description: 'What is called.' }),
  eventTypes: Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: EventTypeName,
    description: 'What it is told of; null: everything, types to come included.',
  }),
  description: nullable(Type.String({ description: 'For you alone.' })),
  status: oneOf([...statuses], 'A disabled endpoint is not called.'),
  createdAt: Time,
  updatedAt: Time,
}
const secret = Type.String({
  description: 'Signs every call as Standard Webhooks describes it. It is shown here and never again.',
})
const secretExample = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='

export const Webhook = component(
  'Webhook',
  Type.Object(visible, { description: 'An endpoint of yours.', examples: [webhookExample] }),
)

export const WebhookWithSecret = component(
  'WebhookWithSecret',
  Type.Object(
    { ...visible, secret },
    {
      description: 'An endpoint of yours with its new secret.',
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
      'https, and a host on the public Internet, at no port of another protocol. In development also http on a loopback address. Names are in ASCII: internationalized ones as A-labels.',
  }),
  eventTypes: Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: EventTypeName,
    minItems: 1,
    maxItems: eventTypes.length,
    uniqueItems: true,
    description: 'What it is to be told of. Omitted or null: everything, types to come included.',
    examples: [['message.received']],
  }),
  description: nullable(patterned('oneLine', { maxLength: 200, description: 'For you alone.' })),
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
      description: 'An endpoint to be called.',
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
      status: Type.Optional(oneOf([...statuses], 'A disabled endpoint is not called.')),
    },
    {
      additionalProperties: false,
      description: 'What is to be different; what is omitted stays as it is.',
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
  description: 'What the last attempt sent: where to, when, and how large its body was.',
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
        description: 'The webhook-id of its calls, the same for every retry.',
      }),
      type: oneOf([...eventTypes, 'webhook.test'], 'What it tells.'),
      status: oneOf(
        ['pending', 'succeeded', 'failed'],
        'Pending: it has yet to be called, or will be again.',
      ),
      attempts: Type.Integer({ minimum: 0, description: 'How often it was tried.' }),
      lastAttemptAt: nullable(Time),
      nextAttemptAt: nullable({
        ...Time,
        description: 'When it is tried again; null: not, or as soon as possible.',
      }),
      request: CallRequest,
      responseStatus: nullable(
        Type.Integer({ description: 'The status that the last attempt was answered with.' }),
      ),
      responseBody: nullable(Type.String({ description: 'Its first 2 KiB.' })),
      error: nullable(Type.String({ description: 'Why the last attempt did not succeed.' })),
      createdAt: Time,
    },
    { description: 'One event for one endpoint.', examples: [deliveryExample] },
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
