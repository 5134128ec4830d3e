// The errors of the client: one class, and subclasses for what callers branch on.

export interface ErrorDetails {
  code: string
  status?: number | null
  requestId?: string | null
  retryAfterSeconds?: number | null
  isTemporary?: boolean
  cause?: unknown
}

/** Every failure of a call. The message is for people, and may change. */
export class PosthornError extends Error {
  override name = 'PosthornError'
  /** Stable, for programs. The API documents its codes. */
  readonly code: string
  /** Null if there was no answer. */
  readonly status: number | null
  /** The id under which the service logged the request. */
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null
  /** Whether the same call may succeed later. */
  readonly isTemporary: boolean

  constructor(message: string, details: ErrorDetails) {
    super(message, { cause: details.cause })
    this.code = details.code
    this.status = details.status ?? null
    this.requestId = details.requestId ?? null
    this.retryAfterSeconds = details.retryAfterSeconds ?? null
    this.isTemporary = details.isTemporary ?? false
  }
}

/** 400, 413, 422: the request is wrong, or too large, or every recipient is suppressed. */
export class InvalidRequestError extends PosthornError {
  override name = 'InvalidRequestError'
}

/** 401: the key is wrong, expired or revoked. */
export class AuthenticationError extends PosthornError {
  override name = 'AuthenticationError'
}

/** 403: the key may not do this, or a limit on the number of objects is reached. */
export class PermissionDeniedError extends PosthornError {
  override name = 'PermissionDeniedError'
}

/** 404, 410: there is no such object, or not any more. */
export class NotFoundError extends PosthornError {
  override name = 'NotFoundError'
}

/** 409, 423: the state of the object does not allow this. */
export class ConflictError extends PosthornError {
  override name = 'ConflictError'
}

/** The key was used before: 409 `idempotency_key_reused` for another request, 410 `idempotency_result_expired`. */
export class IdempotencyKeyReusedError extends ConflictError {
  override name = 'IdempotencyKeyReusedError'
}

/** 429: a limit on requests or on mail is used up. */
export class RateLimitError extends PosthornError {
  override name = 'RateLimitError'
}

/** 500 and above. */
export class ServerError extends PosthornError {
  override name = 'ServerError'
}

/** No whole answer came. The code is `connection_failed`, `timed_out` or `certificate_invalid`. */
export class ConnectionFailedError extends PosthornError {
  override name = 'ConnectionFailedError'
}

/** No message came in time. */
export class WaitTimeoutError extends PosthornError {
  override name = 'WaitTimeoutError'
}

/** The call of a webhook is not genuine, or too old. */
export class WebhookVerificationError extends PosthornError {
  override name = 'WebhookVerificationError'
}

const temporaryCodes = ['idempotency_in_progress', 'delivery_in_progress']

const usedKeyCodes = ['idempotency_key_reused', 'idempotency_result_expired']

/** Returns the error of an answer that is not a success. */
export function errorOf({ status, headers }: Response, text: string): PosthornError {
  const body = parse(text)
  const code = typeof body.error === 'string' ? body.error : `http_${status}`
  const message = typeof body.message === 'string' ? body.message : `The service answered ${status}.`
  const seconds = headers.get('retry-after') ?? ''
  const ErrorClass = usedKeyCodes.includes(code) ? IdempotencyKeyReusedError : classOf(status)
  return new ErrorClass(message, {
    code,
    status,
    requestId: headers.get('x-request-id'),
    // RFC 9110 10.2.3: it may also be a date, which the service never sends.
    retryAfterSeconds: /^\d{1,9}$/.test(seconds) ? Number(seconds) : null,
    isTemporary: status === 423 || status === 429 || status >= 500 || temporaryCodes.includes(code),
  })
}

/** Returns the error of a success whose body is not what the API answers, such as the page of a proxy. */
export function unexpected({ status, headers }: Response): PosthornError {
  const requestId = headers.get('x-request-id')
  return new PosthornError('The answer is not one of the API.', { code: `http_${status}`, status, requestId })
}

function classOf(status: number): typeof PosthornError {
  if (status >= 500) return ServerError
  return classes[status] ?? PosthornError
}

const classes: Record<number, typeof PosthornError> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  413: InvalidRequestError,
  422: InvalidRequestError,
  423: ConflictError,
  429: RateLimitError,
}

function parse(text: string): { error?: unknown; message?: unknown } {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    // A proxy answered, not the service.
    return {}
  }
}
