// Shared by the operations that send: their refusals, and attachments decoded from base64.
import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { type Idempotency, requestHash } from '../../flow/idempotency.ts'
import type { AttachmentBody } from '../../flow/sending/send-draft.ts'
import { decodeBase64 } from '../body/base64.ts'
import { RequestFault } from '../body/request-fault.ts'
import type { ErrorCode } from '../errors.ts'
import type { NewMessage } from '../schemas/send.ts'

/** The codes with which an operation can refuse a send. */
export const sendRefusals: ErrorCode[] = [
  ...([
    'invalid_idempotency_key',
    'marketing_not_available',
    'inbox_not_allowed',
    'recipient_domain_not_allowed',
    'recipient_not_confirmed',
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

type Request<Body> = Pick<FastifyRequest, 'large' | 'params'> & {
  body: Body
  headers: { 'idempotency-key': string }
}

/** The idempotency key of the request, and the hash that recognizes an equal request. */
export function idempotencyOf({ headers, params, body, large }: Request<unknown>): Idempotency {
  return {
    key: headers['idempotency-key'],
    requestHash: large?.requestHash ?? requestHash(params as object, body),
  }
}

/** Decodes the attachments that were not decoded yet. Throws `invalid_request` if one is not canonical base64. */
export function readAttachments({
  body,
  large,
}: Request<Pick<Static<typeof NewMessage.definition>, 'attachments'>>): AttachmentBody[] | undefined {
  return body.attachments?.map(({ content, ...attachment }, index) => {
    const decoded = large?.files.get(index)
    const bytes = decoded === undefined ? decodeBase64(content) : decoded
    if (bytes === null)
      throw new RequestFault('invalid_request', `/attachments/${index}/content must be base64 with padding`)
    return { ...attachment, content: bytes }
  })
}
