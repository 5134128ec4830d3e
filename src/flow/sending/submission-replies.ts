// The SMTP reply to each refusal of a submission.
import type { RefusalCode } from '../../base/errors.ts'
import { type Reply, reply } from '../../smtp/reply.ts'

/** RFC 3463: 5.7.1 is a matter of permission, 4.7.0 of policy for now. */
const replies: Partial<Record<RefusalCode | 'internal_error', readonly [code: number, enhanced: string]>> = {
  // RFC 4954 6: the credentials are invalid.
  unauthorized: [535, '5.7.8'],
  marketing_not_available: [554, '5.7.1'],
  invalid_request: [554, '5.6.0'],
  idempotency_key_reused: [554, '5.6.0'],
  idempotency_result_expired: [554, '5.6.0'],
  // RFC 1870 6.3: the message is larger than this client's limit.
  message_too_large: [552, '5.3.4'],
  // RFC 5321 4.5.3.1.10: too many recipients.
  too_many_recipients: [452, '4.5.3'],
  send_limit_exceeded: [452, '4.7.0'],
  rate_limited: [451, '4.7.0'],
  // The inbox or the thread was deleted meanwhile: the next attempt is decided anew.
  not_found: [451, '4.3.0'],
  idempotency_in_progress: [451, '4.3.0'],
  unavailable: [451, '4.3.0'],
  internal_error: [451, '4.3.0'],
}

/** Sentences in place of the API's, which name an idempotency key that SMTP clients do not have. */
const ownWords: Partial<Record<string, string>> = {
  idempotency_key_reused:
    'Another mail with this Message-ID was accepted from this sender for these recipients. Give each mail its own Message-ID.',
  idempotency_result_expired:
    'This mail was accepted before, and deleted since. To send it again, give it another Message-ID.',
  idempotency_in_progress: 'This mail is being accepted in another session. Try again later.',
}

/** The reply with the words of the error, and its code, which the documentation explains. */
export function refusalReply(error: string, message: string): Reply {
  const [code, enhanced] = replies[error as RefusalCode] ?? [550, '5.7.1']
  return reply(code, enhanced, `${ownWords[error] ?? message} (${error})`)
}
