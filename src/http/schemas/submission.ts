// Schemas of submissions, the states of their recipients, and their events.
import Type from 'typebox'
import { submissionStatuses } from '../../store/status.ts'
import { Mailbox } from './mailbox.ts'
import { Purpose } from './message.ts'
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

export const SubmissionStatus = {
  ...oneOf([...submissionStatuses], 'Delivery state over all recipients.'),
  examples: ['pending'],
}

export const Recipient = Type.Object(
  {
    email: Type.String({ description: 'The address.' }),
    status: oneOf(
      ['pending', 'deferred', 'delivered', 'bounced', 'failed', 'suppressed'],
      'Delivery state of this recipient.',
    ),
    response: nullable(
      Type.String({
        description:
          "The remote server's last reply. Before the first attempt, why the destination is blocked.",
      }),
    ),
    failureCode: {
      ...failureCode,
      description: 'Why delivery failed. Null: no failure.',
    },
    updatedAt: Time,
  },
  { description: 'A recipient and its delivery state.', examples: submissionExample.recipients },
)

export const Submission = component(
  'Submission',
  Type.Object(
    {
      id: Uuid,
      from: Mailbox.ref,
      recipients: Type.Array(Recipient, {
        description: 'Each address once, including bcc.',
      }),
      subject: Type.String({ description: 'Empty after its message or inbox was deleted.' }),
      metadata: MetadataView,
      status: SubmissionStatus,
      queueId: nullable(
        Type.String({
          description: 'The queue id in Received fields and logs. Null until delivery starts.',
        }),
      ),
      response: nullable(
        Type.String({ description: 'The last reply from a remote server, for any recipient.' }),
      ),
      failureCode,
      createdAt: Time,
      updatedAt: Time,
      purpose: Purpose,
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
  host: Type.String({ description: 'The host name.' }),
  ip: Type.String({ description: 'The IP address.' }),
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
      recipient: nullable(Type.String({ description: 'The recipient of the event. Null: all recipients.' })),
      type: oneOf(submissionEventTypes, 'The event type.'),
      at: Time,
      attempt: nullable(Type.Integer({ description: 'The number of the attempt, from 1.' })),
      remote: nullable({ ...Remote, description: 'The contacted server.' }),
      response: nullable(
        Type.String({ description: "The remote server's reply, or the reason why there is none." }),
      ),
      enhancedStatus: nullable(Type.String({ description: 'Such as 5.1.1 (RFC 3463).' })),
      classification: oneOfOrNull(classifications, 'The kind of failure.'),
      failureCode: {
        ...failureCode,
        description:
          'Why the message was not delivered, for `bounced`, `failed`, `suppressed` and `cancelled`. Null otherwise.',
      },
    },
    { description: 'An event of a delivery.', examples: [eventExample] },
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
