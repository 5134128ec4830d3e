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
      email: Type.String({ description: 'As it was given, or as the message had it.' }),
      reason: oneOf(['manual', 'hard_bounce', 'complaint', 'unsubscribe'], 'Why nothing is sent to it.'),
      submissionId: nullable({ ...Uuid, description: 'The submission that it came of.' }),
      createdAt: Time,
    },
    { description: 'An address that nothing is sent to.', examples: [suppressionExample] },
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
      description: 'An address; it compares without case, and internationalized domains by their A-labels.',
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
      email: Type.String({ description: 'Who complained.' }),
      submissionId: nullable(Uuid),
      messageId: nullable({ ...MessageIdText, description: 'The message that was complained of.' }),
      feedbackType: oneOf(
        ['abuse', 'fraud', 'virus', 'not-spam', 'other'],
        'What the report says (RFC 5965).',
      ),
      userAgent: nullable(Type.String({ description: 'The program that wrote the report.' })),
      reportedBy: nullable(Type.String({ description: 'The host or the domain that reported.' })),
      arrivedAt: Time,
      createdAt: Time,
    },
    { description: 'What a recipient said of a message.', examples: [complaintExample] },
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
