// What webhooks and the live stream tell: a body for each type of event, the document's `webhooks`.
import Type, { type TSchema } from 'typebox'
import type { EventType } from '../../store/outbox.ts'
import { Domain } from './domain.ts'
import { Attachment, Message, messageExample } from './message.ts'
import { component, InboxIdText, MessageIdText, Time, WebhookIdText } from './scalars.ts'
import { Event, eventExample, Submission, submissionExample } from './submission.ts'
import { Suppression } from './suppression.ts'

const truncated = Type.Optional(
  Type.Unsafe<true>({ type: 'boolean', enum: [true], description: 'There where a text was cut at 64 KiB.' }),
)
const firstExample = ({ definition }: { definition: object }) =>
  (definition as { examples: [object] }).examples[0]

/** Of a submission; a send without an inbox has no message. */
const delivery = {
  members: {
    message: Type.Unsafe<object | null>({
      anyOf: [Message.ref, { type: 'null' }],
      description: 'Null for a send without an inbox, and where the message was deleted.',
    }),
    submission: Submission.ref,
    event: Event.ref,
    truncated,
  },
  example: { message: messageExample, submission: submissionExample, event: eventExample },
}
const domain = { members: { domain: Domain.ref }, example: { domain: firstExample(Domain) } }

interface Announcement {
  name: string
  summary: string
  members: Record<string, TSchema>
  example: object
}

const announcements: Readonly<Record<EventType, Announcement>> = {
  'message.received': {
    name: 'MessageReceived',
    summary: 'A message has arrived and stands in its thread',
    members: { message: Message.ref, truncated },
    example: { message: messageExample },
  },
  'message.sent': { name: 'MessageSent', summary: 'A send was accepted', ...delivery },
  'message.delivered': { name: 'MessageDelivered', summary: 'A recipient’s server took it', ...delivery },
  'message.deferred': { name: 'MessageDeferred', summary: 'An attempt was put off', ...delivery },
  'message.bounced': {
    name: 'MessageBounced',
    summary: 'A recipient’s server refused it for good',
    ...delivery,
  },
  'message.failed': { name: 'MessageFailed', summary: 'A recipient was given up, or cancelled', ...delivery },
  'message.complained': { name: 'MessageComplained', summary: 'A recipient complained of it', ...delivery },
  'attachment.scanned': {
    name: 'AttachmentScanned',
    summary: 'It is known whether a received attachment is clean',
    members: { messageId: MessageIdText, inboxId: InboxIdText, attachment: Attachment.ref },
    example: {
      messageId: messageExample.id,
      inboxId: messageExample.inboxId,
      attachment: firstExample(Attachment),
    },
  },
  'suppression.created': {
    name: 'SuppressionCreated',
    summary: 'Nothing is sent to an address from now on',
    members: { suppression: Suppression.ref },
    example: { suppression: firstExample(Suppression) },
  },
  'domain.verified': {
    name: 'DomainVerified',
    summary: 'A domain, or a use of it, has been proved',
    ...domain,
  },
  'domain.failed': {
    name: 'DomainFailed',
    summary: 'A domain, or a use of it, is proved no more',
    ...domain,
  },
  'webhook.test': {
    name: 'WebhookTest',
    summary: 'You asked for it',
    members: { webhookId: WebhookIdText },
    example: { webhookId: 'whk_0199a1b23c4d5e6f708192a3' },
  },
}

const bodies = Object.entries(announcements).map(([type, { name, summary, members, example }]) => {
  const body = component(
    `${name}Event`,
    Type.Object(
      {
        type: Type.Unsafe<string>({ type: 'string', enum: [type], description: 'What happened.' }),
        timestamp: { ...Time, description: 'When it happened.' },
        data: Type.Object(members, { description: 'What it tells of.' }),
      },
      {
        description: `${summary}.`,
        examples: [{ type, timestamp: '2026-11-21T09:00:00.000Z', data: example }],
      },
    ),
  )
  return { type, name, summary, body }
})

export const announcementComponents = bodies.map(({ body }) => body)

const header = (name: string, description: string) => ({
  ...{ in: 'header', name, required: true, description },
  schema: { type: 'string' },
})
const callHeaders = [
  header(
    'webhook-id',
    'The id of the event, the same for every retry: what you have seen you need not do again.',
  ),
  header('webhook-timestamp', 'When the call was made, in seconds since 1970.'),
  header(
    'webhook-signature',
    '`v1,` and the HMAC-SHA256 of id, timestamp and body, as Standard Webhooks has it.',
  ),
]

const suppressed = JSON.stringify(
  firstExample(bodies.find(({ type }) => type === 'suppression.created')!.body),
)
export const streamEventId = '0199a1b2-6f70-7192-a3b4-4f5a6b7c8d9e.1234-1-0'
export const streamExample = `id: ${streamEventId}
event: suppression.created
data: ${suppressed}

`

/** The document's `webhooks`: the calls that an endpoint gets. */
export const webhooks = Object.fromEntries(
  bodies.map(({ type, name, summary, body }) => [
    type,
    {
      post: {
        operationId: `on${name}`,
        tags: ['Webhooks'],
        summary,
        parameters: callHeaders,
        requestBody: {
          required: true,
          content: {
            'application/json': { schema: { $ref: `#/components/schemas/${body.definition.$id}` } },
          },
        },
        responses: {
          '2XX': { description: 'Taken. Anything else, or nothing within 15 seconds, is tried again.' },
          410: { description: 'The endpoint is disabled.' },
        },
        security: [],
      },
    },
  ]),
)
