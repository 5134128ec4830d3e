// Schemas of webhook calls and of the live stream: a body for each type of event, and the document's `webhooks`.
import Type, { type TSchema } from 'typebox'
import type { EventType } from '../../store/events/outbox.ts'
import { Domain } from './domain.ts'
import { Attachment, Message, messageExample } from './message.ts'
import { type Component, component, InboxIdText, MessageIdText, Time, WebhookIdText } from './scalars.ts'
import { Event, eventExample, Submission, submissionExample } from './submission.ts'
import { Suppression } from './suppression.ts'

const truncated = Type.Optional(
  Type.Unsafe<true>({ type: 'boolean', enum: [true], description: 'Present if a text was cut at 64 KiB.' }),
)
const firstExample = ({ definition }: { definition: object }) =>
  (definition as { examples: [object] }).examples[0]

const news = { description: 'The event data.' }
const Delivery = component(
  'DeliveryNews',
  Type.Object(
    {
      message: Type.Unsafe<object | null>({
        anyOf: [Message.ref, { type: 'null' }],
        description: 'Null for a send without an inbox, and if the message was deleted.',
      }),
      submission: Submission.ref,
      event: Event.ref,
      truncated,
    },
    { ...news, examples: [{ message: null, submission: submissionExample, event: eventExample }] },
  ),
)
/** The data of events of a submission. `message` is null for a send without an inbox. */
const delivery = { about: Delivery.ref, example: firstExample(Delivery) }
const domain = {
  about: Type.Object({ domain: Domain.ref }, news),
  example: { domain: firstExample(Domain) },
}

interface Announcement {
  name: string
  summary: string
  about: TSchema
  example: object
}

const announcements: Readonly<Record<EventType, Announcement>> = {
  'message.received': {
    name: 'MessageReceived',
    summary: 'A message arrived and is in its thread',
    about: Type.Object({ message: Message.ref, truncated }, news),
    example: { message: messageExample },
  },
  'message.sent': { name: 'MessageSent', summary: 'A send was accepted', ...delivery },
  'message.delivered': {
    name: 'MessageDelivered',
    summary: 'A recipient’s server accepted the message',
    ...delivery,
  },
  'message.deferred': {
    name: 'MessageDeferred',
    summary: 'An attempt was deferred',
    ...delivery,
  },
  'message.bounced': {
    name: 'MessageBounced',
    summary: 'A recipient’s server refused the message permanently',
    ...delivery,
  },
  'message.failed': {
    name: 'MessageFailed',
    summary: 'Delivery to a recipient failed or was cancelled',
    ...delivery,
  },
  'message.complained': {
    name: 'MessageComplained',
    summary: 'A recipient complained about the message',
    ...delivery,
  },
  'attachment.scanned': {
    name: 'AttachmentScanned',
    summary: 'A received attachment was scanned',
    about: Type.Object({ messageId: MessageIdText, inboxId: InboxIdText, attachment: Attachment.ref }, news),
    example: {
      messageId: messageExample.id,
      inboxId: messageExample.inboxId,
      attachment: firstExample(Attachment),
    },
  },
  'suppression.created': {
    name: 'SuppressionCreated',
    summary: 'An address was suppressed',
    about: Type.Object({ suppression: Suppression.ref }, news),
    example: { suppression: firstExample(Suppression) },
  },
  'domain.verified': {
    name: 'DomainVerified',
    summary: 'A domain, or one of its capabilities, was verified',
    ...domain,
  },
  'domain.failed': {
    name: 'DomainFailed',
    summary: 'A domain, or one of its capabilities, is no longer verified',
    ...domain,
  },
  'webhook.test': {
    name: 'WebhookTest',
    summary: 'You requested a test event',
    about: Type.Object({ webhookId: WebhookIdText }, news),
    example: { webhookId: 'whk_0199a1b23c4d5e6f708192a3' },
  },
}

const bodies = Object.entries(announcements).map(([type, { name, summary, about, example }]) => {
  const body = component(
    `${name}Event`,
    Type.Object(
      {
        type: Type.Unsafe<string>({ type: 'string', enum: [type], description: 'Its type.' }),
        timestamp: Time,
        data: about,
      },
      {
        description: `${summary}.`,
        examples: [{ type, timestamp: '2026-11-21T09:00:00.000Z', data: example }],
      },
    ),
  )
  return { type, name, summary, body }
})

const Reset = component(
  'StreamResetEvent',
  Type.Object(
    {
      type: Type.Unsafe<string>({ type: 'string', enum: ['stream.reset'], description: 'Its type.' }),
      timestamp: Time,
      data: Type.Object({}, { description: 'Empty.' }),
    },
    {
      description: 'Events may have been missed, because the given `last-event-id` is no longer known.',
      examples: [{ type: 'stream.reset', timestamp: '2026-11-21T09:00:00.000Z', data: {} }],
    },
  ),
)

const shortest = firstExample(bodies.find(({ type }) => type === 'suppression.created')!.body)

/** A choice of several bodies, selected by their `type`. */
function unionOf(name: string, members: { type: string; body: Component<TSchema> }[], description: string) {
  const referenceTo = ({ definition }: Component<TSchema>) => `#/components/schemas/${definition.$id}`
  return component(
    name,
    Type.Unsafe<object>({
      description,
      oneOf: members.map(({ body }) => body.ref),
      discriminator: {
        propertyName: 'type',
        mapping: Object.fromEntries(members.map(({ type, body }) => [type, referenceTo(body)])),
      },
      examples: [shortest],
    }),
  )
}

const WebhookEvent = unionOf('WebhookEvent', bodies, 'The body of a call to an endpoint.')
const streamed = bodies.filter(({ type }) => type !== 'webhook.test')
/** The `data` of an event of the stream. */
export const StreamEvent = unionOf(
  'StreamEvent',
  [...streamed, { type: 'stream.reset', body: Reset }],
  'The `data` of an event in the stream.',
)

export const announcementComponents = [
  ...[Delivery, ...bodies.map(({ body }) => body), Reset],
  ...[WebhookEvent, StreamEvent],
]

const header = (name: string, description: string) => ({
  in: 'header',
  name,
  required: true,
  description,
  schema: { type: 'string' },
})
const callHeaders = [
  header(
    'webhook-id',
    'The id of the event, the same for every retry. Skip ids that you have already processed.',
  ),
  header('webhook-timestamp', 'Time of the call, in seconds since 1970 (Unix time).'),
  header(
    'webhook-signature',
    '`v1,` and the HMAC-SHA256 of id, timestamp and body, as Standard Webhooks has it.',
  ),
]

export const streamEventId = '0199a1b2-6f70-7192-a3b4-4f5a6b7c8d9e.1234-1-0'
/** An event as it is sent. */
export const streamExample = `id: ${streamEventId}
event: suppression.created
data: ${JSON.stringify(shortest)}
`

/** A call as the document shows it. `name` is the schema of its body. */
const call = (operationId: string, summary: string, name: string) => ({
  operationId,
  tags: ['Webhooks'],
  summary,
  parameters: callHeaders,
  requestBody: {
    required: true,
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
  },
  responses: {
    '2XX': {
      description:
        'Accepted. Posthorn retries after any other status, and after 15 seconds without a response.',
    },
    410: { description: 'Posthorn disables the endpoint.' },
  },
  security: [],
})

/** The document's `webhooks`: the calls that an endpoint receives. */
export const webhooks = Object.fromEntries(
  bodies.map(({ type, name, summary, body }) => [
    type,
    { post: call(`on${name}`, summary, body.definition.$id) },
  ]),
)

/** The document's `callbacks` of an endpoint: all calls in one. */
export const endpointCalls = {
  event: {
    '{$request.body#/url}': { post: call('onEvent', 'An event occurred', WebhookEvent.definition.$id) },
  },
}
