// The error table, and how each kind of failure becomes an answer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BatchFull } from '../base/batch.ts'
import { ServiceError } from '../base/errors.ts'
import { DbFault } from '../postgres/db.ts'
import { RequestFault } from './body/request-fault.ts'
import { answerOf, errorTable } from './errors.ts'

const statuses = Object.entries({
  400: 'invalid_json invalid_request invalid_cursor reserved_local_part invalid_idempotency_key',
  401: 'unauthorized session_required sign_in_failed',
  403: `marketing_not_available insufficient_scope organization_inactive inbox_not_allowed recipient_domain_not_allowed
    recipient_not_confirmed
    send_mode_reply_only sender_not_allowed managed_allowance_exhausted limit_reached wrong_origin
    not_an_owner`,
  404: 'not_found route_not_found',
  409: `address_taken domain_taken domain_in_use domain_not_verified idempotency_key_reused idempotency_in_progress
    delivery_in_progress attachment_not_clean last_owner`,
  410: 'idempotency_result_expired inbox_deleted link_expired',
  413: 'payload_too_large message_too_large too_many_recipients page_too_large attachment_too_large',
  422: 'all_recipients_suppressed',
  423: 'attachment_not_scanned',
  429: 'rate_limited send_limit_exceeded too_many_attempts',
  500: 'internal_error',
  503: 'unavailable',
})

test('every error code has its decided status, and there are no other codes', () => {
  const decided = statuses.flatMap(([status, codes]) =>
    codes.split(/\s+/).map((code) => [code, Number(status)]),
  )
  const ours = Object.entries(errorTable).map(([code, [status]]) => [code, status])
  assert.deepEqual(new Map(ours as [string, number][]), new Map(decided as [string, number][]))
})

const lost = new DbFault(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))
const noSpace = Object.assign(new Error('ENOSPC: no space left, write'), { code: 'ENOSPC', syscall: 'write' })
const ours = new DbFault(Object.assign(new Error('syntax error in "secret"'), { code: '42601' }))
const breach = (instancePath: string, keyword: string, params: object) => ({
  validationContext: 'body',
  message: 'must be right',
  validation: [{ instancePath, keyword, params, message: 'must be right', schemaPath: '' }],
})

const answers: [name: string, failure: unknown, status: number, error: string, message: RegExp][] = [
  ['a refusal', new ServiceError('not_found'), 404, 'not_found', /^There is no such resource\.$/],
  ['a detail', new ServiceError('limit_reached', 'two inboxes'), 403, 'limit_reached', /^two inboxes$/],
  [
    'one message for every 401',
    new ServiceError('unauthorized', 'expired'),
    401,
    'unauthorized',
    /x-api-key is missing, wrong, expired or revoked.* Only \/mcp takes it as Authorization: Bearer\.$/,
  ],
  ['a fault of the request', new RequestFault('invalid_json'), 400, 'invalid_json', /must be JSON/],
  ['a lost database', lost, 503, 'unavailable', /temporarily unavailable/],
  ['a full disk', noSpace, 503, 'unavailable', /temporarily unavailable/],
  ['back-pressure', new BatchFull(), 503, 'unavailable', /temporarily unavailable/],
  ['our SQL', ours, 500, 'internal_error', /^Internal error/],
  ['our bug', new TypeError('x is undefined'), 500, 'internal_error', /^Internal error/],
  ['no error at all', undefined, 500, 'internal_error', /^Internal error/],
  [
    'a wrong type',
    breach('/to/0/email', 'type', {}),
    400,
    'invalid_request',
    /^\/to\/0\/email must be right$/,
  ],
  [
    'a missing member',
    breach('/to/0', 'required', { missingProperty: 'email' }),
    400,
    'invalid_request',
    /^\/to\/0\/email is/,
  ],
  ['the body itself', breach('', 'type', {}), 400, 'invalid_request', /^the body must/],
  [
    'an unknown member',
    breach('', 'additionalProperties', { additionalProperty: 'a/b~' }),
    400,
    'invalid_request',
    /^\/a~1b~0 /,
  ],
]

for (const [name, failure, status, error, message] of answers)
  test(`check 71: ${name} is ${status} ${error}`, () => {
    const answer = answerOf(failure ?? {}, { is404: false, body: {} })
    assert.deepEqual([answer.status, answer.error], [status, error])
    assert.match(answer.message, message)
    assert.doesNotMatch(answer.message, /secret|undefined/)
  })

test('a name of a megabyte is not echoed', () => {
  const failure = breach('', 'additionalProperties', { additionalProperty: 'n'.repeat(1 << 20) })
  assert.ok(answerOf(failure, { is404: false, body: {} }).message.length < 300)
})

test('423, 429 and 503 say how long to wait', () => {
  const seconds = (failure: unknown) => answerOf(failure, { is404: false, body: {} }).retryAfterSeconds
  assert.equal(seconds(new ServiceError('rate_limited', undefined, 17)), 17)
  assert.equal(seconds(new ServiceError('send_limit_exceeded')), 60)
  assert.equal(seconds(lost), 2)
  assert.equal(seconds(new ServiceError('attachment_not_scanned')), 2)
  assert.equal(seconds(new ServiceError('not_found')), undefined)
})
