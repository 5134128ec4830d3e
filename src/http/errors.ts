// The one error table: each code's status and message, and how any failure becomes an answer.
import { Readable } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BatchFull } from '../base/batch.ts'
import { type RefusalCode, ServiceError, type WindowLimit } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { OutageLog } from '../base/outage-log.ts'
import { isOwnFault } from '../flow/own-fault.ts'
import { type RequestCode, RequestFault } from './body/request-fault.ts'
import { describeBreaches } from './breaches.ts'

export type ErrorCode = RefusalCode | RequestCode | 'internal_error'

/** Status and default message of every code. */
export const errorTable: Readonly<Record<ErrorCode, readonly [status: number, message: string]>> = {
  invalid_json: [400, 'The body must be JSON, sent with content-type: application/json.'],
  invalid_request: [400, 'The request is invalid. See /docs.'],
  invalid_cursor: [
    400,
    'The cursor is not from this list. Pass nextCursor unchanged, and no cursor for the first page.',
  ],
  invalid_idempotency_key: [
    400,
    'The header idempotency-key must be 8 to 200 characters A-Z, a-z, 0-9, . _ : -. Use a new key for each new action.',
  ],
  reserved_local_part: [400, 'This local part is reserved. Choose another.'],
  unauthorized: [
    401,
    'The API key in the header x-api-key is missing, wrong, expired or revoked, or not allowed from this IP address. Send the key in x-api-key. Only /mcp takes it as Authorization: Bearer.',
  ],
  session_required: [401, 'You are not signed in, or your session has ended. Sign in.'],
  sign_in_failed: [401, 'The email address or password is wrong, or the address is not confirmed yet.'],
  wrong_origin: [403, 'Not from a signed-in page of this service. Reload it.'],
  not_an_owner: [403, 'Only an owner of the organization can do this.'],
  marketing_not_available: [403, 'Marketing mail is not available here. Use purpose transactional.'],
  insufficient_scope: [403, 'The API key lacks the scope that this operation needs.'],
  organization_inactive: [403, 'The organization is not active. The operator must approve it.'],
  inbox_not_allowed: [
    403,
    'The API key is restricted to inboxes. This request needs another inbox or the whole organization.',
  ],
  recipient_domain_not_allowed: [403, 'The API key cannot send to this domain.'],
  recipient_not_confirmed: [
    403,
    'The API key must not send the first message to an address. Ask a person to send it.',
  ],
  send_mode_reply_only: [403, 'The API key can only reply to messages in a thread.'],
  sender_not_allowed: [
    403,
    "The sender's domain is not verified for sending. Verify it, or send from another address.",
  ],
  managed_allowance_exhausted: [
    403,
    'The organization has opened all inboxes that managedStarter allows on the managed domain. Deleted inboxes count. Open inboxes on your own domain, or ask the operator for more.',
  ],
  limit_reached: [403, 'The organization has reached this limit.'],
  not_found: [404, 'There is no such resource.'],
  route_not_found: [404, 'There is no such operation. /docs lists all operations.'],
  address_taken: [409, 'The address is taken. Choose another.'],
  domain_taken: [409, 'The domain belongs to another organization or to the service itself.'],
  domain_not_verified: [
    409,
    'The ownership of this domain is not verified. Publish its records, then verify it.',
  ],
  domain_in_use: [409, 'The domain still has inboxes. Delete them first.'],
  idempotency_key_reused: [
    409,
    'The idempotency key was already used for a different request. Use a new key for each new action.',
  ],
  idempotency_in_progress: [
    409,
    'The first request with this idempotency key is still running. Try again in a moment.',
  ],
  delivery_in_progress: [409, 'A delivery attempt is in progress. Try again in a moment.'],
  attachment_not_clean: [
    409,
    'The attachment is infected or could not be scanned completely, so it cannot be downloaded.',
  ],
  last_owner: [409, 'An organization needs at least one owner. Make another member an owner first.'],
  link_expired: [410, 'The link was already used or has expired. Request a new one.'],
  idempotency_result_expired: [
    410,
    'The result of this idempotency key was deleted, so the key cannot be used again.',
  ],
  inbox_deleted: [410, 'The inbox was deleted.'],
  payload_too_large: [413, 'The request body is too large.'],
  message_too_large: [413, 'The message is larger than messageContentBytes allows.'],
  too_many_recipients: [413, 'The message has more recipients than recipientsPerMessage allows.'],
  attachment_too_large: [413, 'The attachment exceeds the maximum download size of this deployment.'],
  page_too_large: [413, 'The page is too large. Use a smaller limit.'],
  all_recipients_suppressed: [422, 'All recipients are suppressed, so nothing was sent.'],
  attachment_not_scanned: [
    423,
    'The attachment has not been scanned yet. Retry after the seconds in retry-after, or use ?wait=30. Without a virus scanner, which the operator sets up, attachments cannot be downloaded.',
  ],
  rate_limited: [429, 'Too many requests with this API key. Retry after the seconds in retry-after.'],
  too_many_attempts: [429, 'Too many attempts. Retry after the seconds in retry-after.'],
  send_limit_exceeded: [
    429,
    'A sending limit of the organization is used up (GET /v1/me). Retry after the seconds in retry-after.',
  ],
  internal_error: [500, 'Internal error. It is logged under the request id (x-request-id).'],
  unavailable: [503, 'The service is temporarily unavailable. Try again.'],
}

/** An error as it is answered. */
export interface ErrorAnswer {
  status: number
  error: ErrorCode
  message: string
  retryAfterSeconds: number | undefined
  /** The volume limit that is used up until `retryAfterSeconds` have passed. */
  limit?: WindowLimit | undefined
}

const retryUnavailableSeconds = 2
const retryUnscannedSeconds = 2
const retryLimitedSeconds = 60

/** The answer for a code. `detail` replaces the default message. */
export function errorAnswer(error: ErrorCode, detail = '', retryAfterSeconds?: number): ErrorAnswer {
  const [status, words] = errorTable[error]
  // Every 401 has the same message, so that it does not reveal its cause.
  const message = detail === '' || error === 'unauthorized' ? words : detail
  if (status === 423) retryAfterSeconds ??= retryUnscannedSeconds
  if (status === 503) retryAfterSeconds ??= retryUnavailableSeconds
  if (status === 429) retryAfterSeconds ??= retryLimitedSeconds
  return { status, error, message, retryAfterSeconds }
}

/** Converts a failure into an answer. A failure not caused by the caller, the database or the disk is our bug. */
export function answerOf(
  failure: unknown,
  request: Pick<FastifyRequest, 'is404' | 'body'> & { routeOptions?: FastifyRequest['routeOptions'] },
): ErrorAnswer {
  if (request.is404) return errorAnswer('route_not_found')
  if (failure instanceof ServiceError)
    return {
      ...errorAnswer(failure.code, failure.message, failure.retryAfterSeconds),
      limit: failure.limit,
    }
  if (failure instanceof RequestFault) return errorAnswer(failure.code, failure.message)
  if (failure instanceof BatchFull) return errorAnswer('unavailable')
  if (isOwnFault(failure)) return errorAnswer('unavailable')
  return frameworkAnswer(failure as Partial<FastifyError>, request)
}

function frameworkAnswer(
  { code, validation, validationContext }: Partial<FastifyError>,
  { body, routeOptions }: Parameters<typeof answerOf>[1],
): ErrorAnswer {
  if (validation) {
    if (validationContext === 'headers') return errorAnswer('invalid_idempotency_key')
    if (validationContext === 'body' && body === undefined) return errorAnswer('invalid_json')
    const [first] = validation
    // No list ever issues an empty cursor.
    if (first?.instancePath === '/cursor' && first.keyword === 'minLength')
      return errorAnswer('invalid_cursor')
    return errorAnswer('invalid_request', describeBreaches(validation, routeOptions?.config.elsewhere))
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return errorAnswer('invalid_json')
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return errorAnswer('payload_too_large')
  if (code === 'FST_ERR_BAD_URL') return errorAnswer('route_not_found')
  return errorAnswer('internal_error')
}

/** During an outage of the database some requests still succeed, because keys are cached for a second. */
const outageQuietMs = 2_000

/**
 * Answers every failure by the table, and logs each of our own faults once. No other code logs them. A series of 503
 * answers logs only its first failure and its end. An answer that fails after its header was sent is logged too, unless
 * the client left.
 */
export function answerFailures(api: Pick<FastifyInstance, 'addHook' | 'setErrorHandler'>, log: Log): void {
  const outage = new OutageLog({ log, work: 'requests', quietMs: outageQuietMs })
  api.addHook('onResponse', (request, reply, done) => {
    // Routes without a schema serve files, which need no database, so their success proves nothing.
    if (reply.statusCode < 300 && request.routeOptions.schema !== undefined) outage.succeed()
    done()
  })
  api.addHook('onSend', ({ id }, { raw }, answer, done) => {
    if (answer instanceof Readable)
      answer.once('error', (err) => {
        if (raw.headersSent) log.warn({ err, requestId: id }, 'response interrupted')
      })
    done()
  })
  api.setErrorHandler((failure: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const answer = answerOf(failure, request)
    if (answer.status === 500)
      log.error(
        { err: failure, requestId: request.id, method: request.method, path: pathOf(request) },
        'request failed',
      )
    // A client that left has cancelled its own read.
    if (answer.status === 503 && !reply.raw.destroyed) outage.fail(failure)
    return sendError(reply, answer)
  })
}

/** The path of a request without its query, which may hold data that people put there by mistake. */
export function pathOf(request: FastifyRequest): string {
  const end = request.url.indexOf('?')
  return end === -1 ? request.url : request.url.slice(0, end)
}

/** Sends an error's status, headers and body. */
export function sendError(
  reply: FastifyReply,
  { status, error, message, retryAfterSeconds, limit }: ErrorAnswer,
): FastifyReply {
  if (retryAfterSeconds !== undefined)
    reply.header('retry-after', String(Math.max(1, Math.ceil(retryAfterSeconds))))
  if (limit)
    reply.header(
      'send-limit',
      `"${limit.name}";q=${limit.size};w=${limit.windowSeconds};t=${reply.getHeader('retry-after')}`,
    )
  reply.errorCode = error
  reply.header('content-type', 'application/json; charset=utf-8')
  return reply.code(status).send(JSON.stringify({ error, message }))
}
