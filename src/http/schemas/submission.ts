// Submissions, what became of their recipients, and the events on the way.
import Type from 'typebox'
import { Mailbox } from './mailbox.ts'
import { purposes } from './message.ts'
import { component, MetadataShown, nullable, oneOf, Time, Uuid } from './scalars.ts'

export const submissionStatuses = ['pending', 'delivered', 'partially_delivered', 'failed'] as const

export const submissionExample = {
  id: '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d',
  from: { email: 'calm-otter-52814@inbox.example.net', name: 'Calm Otter' },
  recipients: [
    { email: 'ada@example.com', status: 'pending', response: null, updatedAt: '2026-11-21T09:00:00.000Z' },
  ],
  subject: 'Your table for two',
  metadata: { booking: 4711 },
  status: 'pending',
  queueId: null,
  response: null,
  failureCode: null,
  createdAt: '2026-11-21T09:00:00.000Z',
  updatedAt: '2026-11-21T09:00:00.000Z',
  purpose: 'transactional',
}

const Recipient = Type.Object({
  email: Type.String(),
  status: oneOf(
    ['pending', 'deferred', 'delivered', 'bounced', 'failed', 'suppressed'],
    'Where this recipient stands.',
  ),
  response: nullable(Type.String({ description: "The remote server's last reply." })),
  updatedAt: Time,
})

export const Submission = component(
  'Submission',
  Type.Object(
    {
      id: Uuid,
      from: Mailbox.ref,
      recipients: Type.Array(Recipient),
      subject: Type.String(),
      metadata: MetadataShown,
      status: oneOf([...submissionStatuses], 'What its recipients make of it.'),
      queueId: nullable(
        Type.String({
          description: 'Its name in Received lines and logs, once the delivery engine has taken it.',
        }),
      ),
      response: nullable(Type.String()),
      failureCode: nullable(Type.String()),
      createdAt: Time,
      updatedAt: Time,
      purpose: oneOf([...purposes], 'What kind of mail it is.'),
    },
    { description: 'One accepted send.', examples: [submissionExample] },
  ),
)

export const SubmissionList = component(
  'SubmissionList',
  Type.Object(
    { submissions: Type.Array(Submission.ref), nextCursor: nullable(Type.String()) },
    {
      description: 'Submissions, newest first.',
      examples: [{ submissions: [submissionExample], nextCursor: null }],
    },
  ),
)

const eventTypes = [
  ...[
    'accepted',
    'queued',
    'attempted',
    'deferred',
    'delivered',
    'bounced',
    'failed',
    'suppressed',
    'complained',
    'cancelled',
  ],
]

const Remote = Type.Object({
  host: Type.String(),
  ip: Type.String(),
  tls: nullable(Type.String({ description: 'The protocol, such as TLSv1.3.' })),
})

const eventExample = {
  id: '0199a1b2-6f70-7192-a3b4-4f5a6b7c8d9e',
  submissionId: '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d',
  recipient: 'ada@example.com',
  type: 'delivered',
  at: '2026-11-21T09:00:01.250Z',
  attempt: 1,
  remote: { host: 'mx.example.com', ip: '203.0.113.9', tls: 'TLSv1.3' },
  response: '250 2.0.0 queued',
  enhancedStatus: '2.0.0',
  classification: null,
}

const Event = component(
  'DeliveryEvent',
  Type.Object(
    {
      id: Uuid,
      submissionId: Uuid,
      recipient: nullable(Type.String()),
      type: oneOf(eventTypes, 'What happened.'),
      at: Time,
      attempt: nullable(Type.Integer()),
      remote: nullable(Remote),
      response: nullable(Type.String()),
      enhancedStatus: nullable(Type.String({ description: 'Such as 5.1.1 (RFC 3463).' })),
      classification: nullable(Type.String()),
    },
    { description: 'A fact about a delivery.', examples: [eventExample] },
  ),
)

export const EventList = component(
  'DeliveryEventList',
  Type.Object(
    { events: Type.Array(Event.ref), nextCursor: nullable(Type.String()) },
    { description: 'Events, oldest first.', examples: [{ events: [eventExample], nextCursor: null }] },
  ),
)

export const submissionComponents = [Submission, SubmissionList, Event, EventList]
