// A request that HTTP itself refuses.

/** Codes that only HTTP knows, beside those of the service. */
export type RequestCode = 'invalid_json' | 'invalid_idempotency_key' | 'payload_too_large' | 'route_not_found'

/** Nothing of the service was asked. `detail` replaces the code's own words. */
export class RequestFault extends Error {
  readonly code: RequestCode | 'invalid_request'

  constructor(code: RequestCode | 'invalid_request', detail?: string) {
    super(detail ?? '')
    this.name = 'RequestFault'
    this.code = code
  }
}
