// What the operations that send have in common: their refusals, and attachments out of base64.
import type { Static } from 'typebox'
import type { AttachmentBody } from '../../flow/send-draft.ts'
import { type ErrorCode, RequestFault } from '../errors.ts'
import type { NewMessage } from '../schemas/send.ts'

/** The codes that an operation can refuse a send with. */
export const sendRefusals: ErrorCode[] = [
  ...([
    'invalid_idempotency_key',
    'marketing_not_available',
    'inbox_not_allowed',
    'recipient_domain_not_allowed',
  ] as const),
  ...([
    'send_mode_reply_only',
    'sender_not_allowed',
    'not_found',
    'idempotency_key_reused',
    'idempotency_in_progress',
  ] as const),
  ...([
    'idempotency_result_expired',
    'message_too_large',
    'too_many_recipients',
    'all_recipients_suppressed',
    'send_limit_exceeded',
  ] as const),
]

/** Decodes the attachments; throws `invalid_request` where one is not canonical base64. */
export function readAttachments(
  given: Static<typeof NewMessage.definition>['attachments'],
): AttachmentBody[] | undefined {
  return given?.map(({ content, ...attachment }, index) => {
    const bytes = Buffer.from(content, 'base64')
    // RFC 4648 3.5: foreign characters, missing padding and stray bits are refused; the decoder skips them.
    if (bytes.toString('base64') !== content) {
      throw new RequestFault('invalid_request', `/attachments/${index}/content must be base64 with padding`)
    }
    return { ...attachment, content: bytes }
  })
}
