// Schemas of suppressions and complaints.
import Type from 'typebox'
import { component, Email, MessageIdText, NextCursor, nullable, oneOf, Time, Uuid } from './scalars.ts'

const submissionId = '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d'

const suppressionExample = {
  email: 'nobody@example.com',
  reason: 'hard_bounce',
  submissionId,
  createdAt: '2026-11-21T09:00:02.000Z',
}

export const Suppression = component(
  'Suppression',
  Type.Object(
    {
      email: Type.String({ description: 'As given, or as in the message.' }),
      reason: oneOf(['manual', 'hard_bounce', 'complaint', 'unsubscribe'], 'Why it is suppressed.'),
      submissionId: nullable({ ...Uuid, description: 'The submission that caused it.' }),
      createdAt: Time,
    },
    {
      description: 'A suppressed address.',
      examples: [suppressionExample],
    },
  ),
)

export const SuppressionList = component(
  'SuppressionList',
  Type.Object(
    { suppressions: Type.Array(Suppression.ref), nextCursor: NextCursor },
    {
      description: 'Suppressions, newest first.',
      examples: [{ suppressions: [suppressionExample], nextCursor: null }],
    },
  ),
)

/** The body of the operations that add and remove a suppression. */
export const SuppressedAddress = component(
  'SuppressedAddress',
  Type.Object(
    { email: Email },
    {
      additionalProperties: false,
      description: 'An address. Comparison ignores case and converts internationalized domains to A-labels.',
      examples: [{ email: 'nobody@example.com' }],
    },
  ),
)

const complaintExample = {
  id: '0199a1b2-7081-72a3-b4c5-5a6b7c8d9e0f',
  email: 'ada@example.com',
  submissionId,
  messageId: 'msg_0199a1b25e6f708192a33e4f',
  feedbackType: 'abuse',
  userAgent: 'ExampleFeedback/2.0',
  reportedBy: 'mx.example.com',
  arrivedAt: '2026-11-21T10:00:00.000Z',
  createdAt: '2026-11-21T10:05:00.000Z',
}

export const Complaint = component(
  'Complaint',
  Type.Object(
    {
      id: Uuid,
      email: Type.String({ description: 'The complaining recipient.' }),
      submissionId: nullable(Uuid),
      messageId: nullable({ ...MessageIdText, description: 'The message that the complaint is about.' }),
      feedbackType: oneOf(
        ['abuse', 'fraud', 'virus', 'not-spam', 'other'],
        'The feedback type of the report (RFC 5965).',
      ),
      userAgent: nullable(Type.String({ description: 'The program that created the report.' })),
      reportedBy: nullable(Type.String({ description: 'The host or domain that sent the report.' })),
      arrivedAt: Time,
      createdAt: Time,
    },
    { description: 'A complaint of a recipient about a message.', examples: [complaintExample] },
  ),
)

export const ComplaintList = component(
  'ComplaintList',
  Type.Object(
    { complaints: Type.Array(Complaint.ref), nextCursor: NextCursor },
    {
      description: 'Complaints, newest first.',
      examples: [{ complaints: [complaintExample], nextCursor: null }],
    },
  ),
)

export const suppressionComponents = [
  ...[Suppression, SuppressionList, SuppressedAddress, Complaint, ComplaintList],
]
