// Schemas of submissions, the states of their recipients, and their events.
import Type from 'typebox'
import { submissionStatuses } from '../../store/status.ts'
import { Mailbox } from './mailbox.ts'
import { purposes } from './message.ts'
import {
  component,
  failureCode,
  MetadataView,
  NextCursor,
  nullable,
  oneOf,
  oneOfOrNull,
  Time,
  Uuid,
} from './scalars.ts'

export const submissionExample = {
  id: '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d',
  from: { email: 'calm-otter-52814@inbox.example.net', name: 'Calm Otter' },
  recipients: [
    {
      email: 'ada@example.com',
      status: 'pending',
      response: null,
      failureCode: null,
      updatedAt: '2026-11-21T09:00:00.000Z',
    },
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

/** A submission after its cancellation. */
export const cancelledExample = {
  ...submissionExample,
  recipients: submissionExample.recipients.map((recipient) => ({
    ...recipient,
    status: 'failed',
    failureCode: 'cancelled',
    updatedAt: '2026-11-21T09:00:20.000Z',
  })),
  status: 'failed',
  failureCode: 'cancelled',
  updatedAt: '2026-11-21T09:00:20.000Z',
}

const Recipient = Type.Object({
  email: Type.String({ description: 'The address.' }),
  status: oneOf(
    ['pending', 'deferred', 'delivered', 'bounced', 'failed', 'suppressed'],
    'Where this recipient stands.',
  ),
  response: nullable(
    Type.String({
      description:
        "The remote server's last reply; of a recipient that waits untried, why the way to its server is blocked.",
    }),
  ),
  failureCode: { ...failureCode, description: 'Why this recipient did not get it; null: no such reason.' },
  updatedAt: Time,
})

export const Submission = component(
  'Submission',
  Type.Object(
    {
      id: Uuid,
      from: Mailbox.ref,
      recipients: Type.Array(Recipient, { description: 'Each address once, hidden ones (bcc) too.' }),
      subject: Type.String({ description: 'Empty once its message was deleted, or the inbox of it.' }),
      metadata: MetadataView,
      status: oneOf([...submissionStatuses], 'What its recipients make of it.'),
      queueId: nullable(
        Type.String({
          description: 'Its name in Received lines and logs, once the delivery engine has taken it.',
        }),
      ),
      response: nullable(
        Type.String({ description: 'The last reply that a remote server gave, of any recipient.' }),
      ),
      failureCode,
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
    { submissions: Type.Array(Submission.ref), nextCursor: NextCursor },
    {
      description: 'Submissions, newest first.',
      examples: [{ submissions: [submissionExample], nextCursor: null }],
    },
  ),
)

const classifications = [
  ...['hard_bounce', 'mailbox_full', 'policy', 'spam', 'greylisted', 'rate_limited', 'network', 'dns', 'tls'],
  ...['protocol', 'expired', 'other'],
]

const submissionEventTypes = [
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
  host: Type.String({ description: 'Its name.' }),
  ip: Type.String({ description: 'Its address.' }),
  tls: nullable(Type.String({ description: 'The protocol, such as TLSv1.3.' })),
})

export const eventExample = {
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
  failureCode: null,
}

export const Event = component(
  'DeliveryEvent',
  Type.Object(
    {
      id: Uuid,
      submissionId: Uuid,
      recipient: nullable(Type.String({ description: 'Whom it is about; null: all of them.' })),
      type: oneOf(submissionEventTypes, 'What happened.'),
      at: Time,
      attempt: nullable(Type.Integer({ description: 'The number of the attempt, from 1.' })),
      remote: nullable({ ...Remote, description: 'The server that was spoken to.' }),
      response: nullable(Type.String({ description: "The remote server's reply, or why there is none." })),
      enhancedStatus: nullable(Type.String({ description: 'Such as 5.1.1 (RFC 3463).' })),
      classification: oneOfOrNull(classifications, 'What kind of failure it was.'),
      failureCode: {
        ...failureCode,
        description:
          'Why its recipient did not get it, of `bounced`, `failed`, `suppressed` and `cancelled`; else null.',
      },
    },
    { description: 'A fact about a delivery.', examples: [eventExample] },
  ),
)

export const EventList = component(
  'DeliveryEventList',
  Type.Object(
    { events: Type.Array(Event.ref), nextCursor: NextCursor },
    { description: 'Events, oldest first.', examples: [{ events: [eventExample], nextCursor: null }] },
  ),
)

export const submissionComponents = [Submission, SubmissionList, Event, EventList]
