// Schemas of path parameters and headers.
import Type from 'typebox'
import { AttachmentIdText, InboxIdText, MessageIdText, patterned, ThreadIdText, Uuid } from './scalars.ts'

export const InboxParams = Type.Object({ inboxId: InboxIdText })
export const ThreadParams = Type.Object({ threadId: ThreadIdText })
export const MessageParams = Type.Object({ messageId: MessageIdText })
export const AttachmentParams = Type.Object({ messageId: MessageIdText, attachmentId: AttachmentIdText })
export const SubmissionParams = Type.Object({ submissionId: Uuid })

const idempotencyKey = patterned('idempotencyKey', {
  minLength: 8,
  maxLength: 200,
  description:
    'A new key for each logical action, the same key for its retries: a UUID, or `booking-4711:confirmation`.',
  // The documentation page fills it in. Its text reminds readers to replace it.
  examples: ['a-new-one-for-each-action'],
})

export const IdempotencyHeaders = Type.Object({ 'idempotency-key': idempotencyKey })
export const OptionalIdempotencyHeaders = Type.Object({ 'idempotency-key': Type.Optional(idempotencyKey) })
