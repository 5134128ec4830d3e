// The document: complete, valid in itself, true of what the server answers, and the page that shows it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { judgeOf, type Media, type Operation, operationsOf, readDocument, type Schema } from './document.ts'
import { setStage } from './stage.ts'

const stage = await setStage({ after })
const document = await readDocument(stage.base)
const operations = operationsOf(document)
const judge = (schema: Schema) => judgeOf(document, schema)

// The published statuses of the specification's tables, where it has them.
const decided: [method: string, path: string, statuses?: string][] = [
  ['GET', '/v1/me', '400 401 403 429 500 503'],
  ['POST', '/v1/inboxes', '400 401 403 404 409 429 500 503'],
  ['GET', '/v1/inboxes'],
  ['GET', '/v1/inboxes/{inboxId}', '400 401 403 404 429 500 503'],
  ['DELETE', '/v1/inboxes/{inboxId}', '400 401 403 409 429 500 503'],
  ['GET', '/v1/inboxes/{inboxId}/export', '400 401 403 404 410 413 429 500 503'],
  ['GET', '/v1/inboxes/{inboxId}/threads'],
  ['GET', '/v1/inboxes/{inboxId}/messages'],
  ['POST', '/v1/inboxes/{inboxId}/messages', '400 401 403 404 409 410 413 422 429 500 503'],
  ['GET', '/v1/messages/{messageId}'],
  ['DELETE', '/v1/messages/{messageId}', '400 401 403 409 429 500 503'],
  ['GET', '/v1/messages/{messageId}/source'],
  ['GET', '/v1/messages/{messageId}/headers', '400 401 403 404 429 500 503'],
  ['GET', '/v1/messages/{messageId}/attachments/{attachmentId}', '400 401 403 404 409 413 423 429 500 503'],
  ['GET', '/v1/threads/{threadId}'],
  ['POST', '/v1/threads/{threadId}/replies', '400 401 403 404 409 410 413 422 429 500 503'],
  ['GET', '/v1/submissions', '400 401 403 429 500 503'],
  ['GET', '/v1/submissions/{submissionId}', '400 401 403 404 429 500 503'],
  ['GET', '/v1/submissions/{submissionId}/events', '400 401 403 404 429 500 503'],
  ['POST', '/v1/submissions/{submissionId}/cancel'],
  ['POST', '/v1/send', '400 401 403 409 413 422 429 500 503'],
  ['GET', '/v1/suppressions', '400 401 403 429 500 503'],
  ['POST', '/v1/suppressions', '400 401 403 429 500 503'],
  ['DELETE', '/v1/suppressions', '400 401 403 404 429 500 503'],
  ['GET', '/v1/complaints', '400 401 403 429 500 503'],
  ['POST', '/v1/domains', '400 401 403 409 429 500 503'],
  ['GET', '/v1/domains', '400 401 403 429 500 503'],
  ['GET', '/v1/domains/{domainId}', '400 401 403 404 429 500 503'],
  ['POST', '/v1/domains/{domainId}/verify', '400 401 403 404 429 500 503'],
  ['POST', '/v1/domains/{domainId}/rotate-dkim', '400 401 403 404 429 500 503'],
  ['GET', '/v1/domains/{domainId}/traffic', '400 401 403 404 429 500 503'],
  ['GET', '/v1/domains/{domainId}/zone', '400 401 403 404 429 500 503'],
  ['DELETE', '/v1/domains/{domainId}', '400 401 403 409 429 500 503'],
  ['GET', '/v1/metrics/delivery', '400 401 403 429 500 503'],
  ['POST', '/v1/validate', '400 401 403 429 500 503'],
  ['POST', '/v1/validate/bulk', '400 401 403 429 500 503'],
  ['POST', '/v1/webhooks', '400 401 403 429 500 503'],
  ['GET', '/v1/webhooks', '400 401 403 429 500 503'],
  ['GET', '/v1/webhooks/{webhookId}', '400 401 403 404 429 500 503'],
  ['PATCH', '/v1/webhooks/{webhookId}'],
  ['DELETE', '/v1/webhooks/{webhookId}', '400 401 403 404 409 429 500 503'],
  ['POST', '/v1/webhooks/{webhookId}/rotate-secret', '400 401 403 404 429 500 503'],
  ['POST', '/v1/webhooks/{webhookId}/test', '400 401 403 404 429 500 503'],
  ['GET', '/v1/webhooks/{webhookId}/deliveries', '400 401 403 404 429 500 503'],
  ['POST', '/v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay', '400 401 403 404 429 500 503'],
  ['GET', '/v1/events', '400 401 403 429 500 503'],
]

test('check 71: the document has the operations that were decided, and no others', () => {
  assert.equal(document.openapi, '3.1.0')
  assert.equal(document.info.version, '0.1.0-private-beta')
  const names = ({ method, path }: { method: string; path: string }) => `${method} ${path}`
  assert.deepEqual(operations.map(names).sort(), decided.map(([method, path]) => `${method} ${path}`).sort())
})

for (const [method, path, statuses] of decided)
  test(`check 71: ${method} ${path} documents its errors`, () => {
    const { responses, security, operationId, summary } = document.paths[path]![method.toLowerCase()]!
    assert.ok(operationId && summary && security.length >= 1)
    const documented = Object.keys(responses).filter((status) => Number(status) >= 400)
    for (const status of ['400', '401', '403', '429', '500', '503']) assert.ok(documented.includes(status))
    // A body can be too large wherever there is one.
    const known = documented.filter(
      (status) =>
        status !== '413' ||
        !/^\/v1\/(inboxes|domains|suppressions|validate|validate\/bulk|webhooks)$/.test(path),
    )
    if (statuses) assert.deepEqual(known, statuses.split(' '))
    for (const { description } of Object.values(responses)) assert.notEqual(description, 'Default Response')
  })

function everySchema(value: unknown, found: Schema[] = []): Schema[] {
  if (value === null || typeof value !== 'object') return found
  if (!Array.isArray(value)) found.push(value as Schema)
  for (const member of Object.values(value)) everySchema(member, found)
  return found
}

test('every reference leads somewhere, and no two operations share a name', () => {
  for (const { $ref } of everySchema(document)) {
    if ($ref === undefined) continue
    const [, kind, name] = /^#\/components\/(schemas|headers)\/([\w-]+)$/.exec($ref) ?? []
    assert.ok(kind && name && document.components[kind as 'schemas' | 'headers'][name], $ref)
  }
  const names = operations.map(({ operation }) => operation.operationId)
  assert.equal(new Set(names).size, names.length)
})

for (const [name, schema] of Object.entries(document.components.schemas))
  test(`the examples of ${name} are what it describes`, () => {
    assert.ok(schema.description)
    assert.ok(schema.examples?.length)
    const judged = judge(schema)
    for (const example of schema.examples) {
      const [isRight, errors] = judged.Errors(example)
      assert.ok(isRight, JSON.stringify(errors))
    }
  })

/** Every media type of an operation with its examples. */
function mediaOf({ requestBody, responses }: Operation): { place: string; type: string; media: Media }[] {
  return Object.entries({ request: requestBody, ...responses }).flatMap(([place, holder]) =>
    Object.entries(holder?.content ?? {}).map(([type, media]) => ({ place, type, media })),
  )
}

for (const { method, path, operation } of operations)
  test(`check 71: ${method} ${path} has examples, and they are what it describes`, () => {
    for (const { place, type, media } of mediaOf(operation)) {
      const examples = Object.entries(media.examples ?? {})
      // Any bytes would do.
      assert.ok(examples.length > 0 || type === 'application/octet-stream', place)
      const judged = judge(media.schema)
      for (const [name, { value }] of examples) {
        const [isRight, errors] = judged.Errors(value)
        assert.ok(isRight, `${place} ${name} ${JSON.stringify(errors)}`)
        if (Number(place) >= 400) assert.equal((value as { error: string }).error, name)
      }
    }
    for (const { name, description, example, schema } of operation.parameters ?? [])
      assert.ok(
        description &&
          (example !== undefined || schema.enum || 'default' in schema || /^(q|cursor|after)$/.test(name)),
        name,
      )
    assert.equal(operation.tags.length, 1)
    assert.match(operation.summary, /^[A-Z].*[^.]$/)
  })

test('every answer documents its headers, as every answer has them', async () => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox('headers')
  for (const { method, path, operation } of operations)
    for (const [status, { headers = {} }] of Object.entries(operation.responses)) {
      const names = Object.keys(headers)
      assert.ok(names.includes('x-request-id'), `${method} ${path} ${status}`)
      assert.equal(names.includes('retry-after'), ['429', '503'].includes(status))
      assert.equal(names.includes('RateLimit'), !['401', '503'].includes(status))
    }
  const { headers } = await api.call(`/v1/inboxes/${inbox.id}`)
  for (const name of Object.keys(document.paths['/v1/inboxes/{inboxId}']!['get']!.responses['200']!.headers!))
    assert.ok(headers.has(name), name)
})

test('a common linter finds nothing in the document', async () => {
  const config = await createConfig({
    extends: ['recommended'],
    // The linter closes each branch of a choice, which no validator does.
    rules: { 'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: true } },
  })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
    [],
  )
})

test('RFC 9110 9.3.2: what anybody can GET answers HEAD, without a body', async () => {
  for (const path of ['/openapi.json', '/docs', '/docs/script.js']) {
    const [got, headed] = [await fetch(stage.base + path), await fetch(stage.base + path, { method: 'HEAD' })]
    assert.deepEqual([got.status, headed.status], [200, 200])
    assert.equal(headed.headers.get('content-type'), got.headers.get('content-type'))
    assert.ok(Number(headed.headers.get('content-length')) > 0)
    assert.equal(headed.headers.get('content-length'), got.headers.get('content-length'))
    assert.equal(await headed.text(), '')
  }
  assert.equal((await fetch(`${stage.base}/v1/me`, { method: 'HEAD' })).status, 404)
})

test('check 65: the page at /docs loads nothing from anywhere else', async () => {
  const page = await fetch(`${stage.base}/docs`)
  const html = await page.text()
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /^default-src 'none'; script-src 'self' 'sha256-[^']+'; /)
  assert.doesNotMatch(policy, /https?:|unsafe-eval|\*|script-src[^;]*unsafe-inline/)
  const [, address] = /src="(\/docs\/script\.js\?v=[\w-]{22})"/.exec(html)!
  assert.deepEqual(
    [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, target]) => target),
    ['data:,', address],
  )
  assert.doesNotMatch(html, /https?:\/\//)
  const script = await fetch(stage.base + address)
  assert.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.ok((await script.text()).length > 1_000_000)
})
