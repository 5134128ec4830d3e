// Refusals: of a request, by one closed union of codes that knows no HTTP, and of a start.

export type RefusalCode =
  | 'invalid_request'
  | 'invalid_cursor'
  | 'reserved_local_part'
  | 'insufficient_scope'
  | 'organization_inactive'
  | 'marketing_not_available'
  | 'inbox_not_allowed'
  | 'recipient_domain_not_allowed'
  | 'recipient_not_confirmed'
  | 'send_mode_reply_only'
  | 'sender_not_allowed'
  | 'managed_allowance_exhausted'
  | 'limit_reached'
  | 'not_found'
  | 'address_taken'
  | 'domain_taken'
  | 'domain_not_verified'
  | 'domain_in_use'
  | 'idempotency_key_reused'
  | 'idempotency_in_progress'
  | 'delivery_in_progress'
  | 'idempotency_result_expired'
  | 'inbox_deleted'
  | 'message_too_large'
  | 'too_many_recipients'
  | 'page_too_large'
  | 'attachment_not_clean'
  | 'attachment_not_scanned'
  | 'attachment_too_large'
  | 'all_recipients_suppressed'
  | 'rate_limited'
  | 'send_limit_exceeded'
  | 'unauthorized'
  | 'session_required'
  | 'sign_in_failed'
  | 'wrong_origin'
  | 'not_an_owner'
  | 'link_expired'
  | 'last_owner'
  | 'too_many_attempts'
  | 'unavailable'

/** A limit of `size` per window of time. */
export interface WindowLimit {
  name: string
  size: number
  windowSeconds: number
}

/**
 * The caller's fault, or a policy: our service works. `detail` is for people and never has a secret. `retryAfterSeconds` is
 * set if waiting helps, and `limit` if a limit is used up until then.
 */
export class ServiceError extends Error {
  readonly code: RefusalCode
  readonly retryAfterSeconds: number | undefined
  readonly limit: WindowLimit | undefined

  constructor(code: RefusalCode, detail?: string, retryAfterSeconds?: number, limit?: WindowLimit) {
    super(detail ?? '')
    this.name = 'ServiceError'
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
    this.limit = limit
  }
}

/** Why the service, or a command, does not start. Its message is one line that says what to do, and has no secret. */
export class StartRefused extends Error {
  /** The doctor's name for the check. */
  readonly about: string
  readonly reason: string
  readonly mend: string

  constructor(about: string, reason: string, mend: string) {
    super(`${reason}: ${mend}`)
    this.name = 'StartRefused'
    this.about = about
    this.reason = reason
    this.mend = mend
  }
}
