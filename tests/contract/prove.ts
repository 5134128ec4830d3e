// Proofs: in real circumstances, one operation answers with one status and code.
import assert from 'node:assert/strict'
import { relative, resolve } from 'node:path'
import { test } from 'node:test'
import { getCallSites } from 'node:util'
import type { Validator } from 'typebox/schema'
import type { Answer } from './ask.ts'
import type { ApiDocument, Operation } from './document.ts'

/** The result of each proof for `npm run contract`, as a diagnostic of its test that begins with `mark`. */
export interface Proof {
  operation: string
  status: number
  code: string | null
  how: string
  place: string
  passed: boolean
}

export const mark = 'contract '
/** `npm run contract` sets this variable. Without it, the tests print no diagnostics. */
export const wanted = 'POSTHORN_TEST_CONTRACT'

/** Creates the circumstances and sends the request. Every returned answer is checked. */
export type Circumstances = () => Promise<Answer | Answer[]>

/**
 * Claims that `operation` (`POST /v1/send`, as in the document) answers `status`, with `code` for an error, and proves
 * it. Checks the status, the code, the body by the document's schema, and the headers that belong to the status.
 */
export type Prove = (
  operation: string,
  status: number,
  code: string | null,
  how: string,
  run: Circumstances,
) => void

export function provesBy(document: ApiDocument): Prove {
  return (name, status, code, how, run) => {
    const place = placeOfCaller()
    const operation = document.find(name)
    test(`${[name, status, code].filter(Boolean).join(' ')}: ${how}`, async (t) => {
      let passed = false
      try {
        const answers = [await run()].flat()
        assert.ok(answers.length > 0, 'nothing was asked')
        for (const answer of answers) judge(operation, { status, code }, answer)
        passed = true
      } finally {
        const proof: Proof = { operation: name, status, code, how, place, passed }
        if (process.env[wanted]) t.diagnostic(mark + JSON.stringify(proof))
      }
    })
  }
}

const root = resolve(import.meta.dirname, '../..')

/** Returns the line of the test file that requested the proof, even through a function of that file. */
function placeOfCaller(): string {
  const sites = getCallSites(10, { sourceMap: false })
  const site = sites.findLast(({ scriptName }) => scriptName.endsWith('.test.ts'))
  return site ? `${relative(root, site.scriptName.replace(/^file:\/\//, ''))}:${site.lineNumber}` : ''
}

function judge(
  operation: Operation,
  { status, code }: { status: number; code: string | null },
  answer: Answer,
): void {
  const got = `${answer.status} ${answer.bytes.subarray(0, 500)}`
  assert.equal(answer.status, status, `${operation.name} answered ${got}`)
  if (code === null) judgeSuccess(operation, answer)
  else judgeRefusal(operation, code, answer)
  judgeHeaders(status, code, answer.headers)
}

function judgeSuccess({ success }: Operation, { status, headers, bytes, body }: Answer): void {
  assert.equal(status, success.status, 'a success that the document does not have')
  const isDownload = success.mediaType !== null && success.mediaType !== 'application/json'
  const contentType = headers.get('content-type')
  if (success.mediaType === null) {
    assert.deepEqual([bytes.length, contentType], [0, null])
  } else {
    assert.equal(contentType?.split(';')[0], success.mediaType)
    if (success.judge) mustFit(success.judge, body)
  }
  const isMail = isDownload && /octet-stream|rfc822/.test(success.mediaType ?? '')
  assert.equal(headers.get('cache-control'), isMail ? 'private, no-store' : 'no-store')
}

function judgeRefusal({ name, refusals }: Operation, code: string, answer: Answer): void {
  const { status, headers, body } = answer
  const known = refusals.find((one) => one.status === status && one.code === code)
  assert.ok(known, `the document does not have ${status} ${code} for ${name}`)
  mustFit(known.judge, body)
  assert.deepEqual(Object.keys(body!), ['error', 'message'])
  assert.equal(body!['error'], code, String(body!['message']))
  assert.ok(String(body!['message']).length > 0)
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(headers.get('cache-control'), 'no-store')
}

function mustFit(judge: Validator, body: unknown): void {
  const [isRight, errors] = judge.Errors(body)
  assert.ok(isRight, `${JSON.stringify(errors)} in ${JSON.stringify(body)}`)
}

function judgeHeaders(status: number, code: string | null, headers: Headers): void {
  assert.match(headers.get('x-request-id') ?? '', /^[\w-]{8,}$/)
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  const retryAfter = headers.get('retry-after')
  if ([423, 429, 503].includes(status)) assert.match(retryAfter ?? '', /^[1-9]\d*$/)
  else if (code !== 'idempotency_in_progress') assert.equal(retryAfter, null)
  // On a 503 the rate may be unknown, because its source may be what is unreachable.
  if (status === 503 && !headers.has('ratelimit')) return
  const isKnownCaller = status !== 401
  const policy = headers.get('ratelimit-policy')
  assert.equal(policy !== null && /^"requests";q=\d+;w=60$/.test(policy), isKnownCaller, String(policy))
  const rate = headers.get('ratelimit')
  assert.equal(rate !== null && /^"requests";r=\d+;t=\d+$/.test(rate), isKnownCaller, String(rate))
}
