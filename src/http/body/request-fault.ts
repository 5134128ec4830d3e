// Errors of requests that HTTP itself refuses.

/** Codes that only HTTP uses, in addition to those of the service. */
export type RequestCode = 'invalid_json' | 'invalid_idempotency_key' | 'payload_too_large' | 'route_not_found'

/** Thrown before the service is called. `detail` replaces the code's default message. */
export class RequestFault extends Error {
  readonly code: RequestCode | 'invalid_request'

  constructor(code: RequestCode | 'invalid_request', detail?: string) {
    super(detail ?? '')
    this.name = 'RequestFault'
    this.code = code
  }
}
