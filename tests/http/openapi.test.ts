// The OpenAPI document is complete, valid and true of the server's answers, and the page shows it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { callsOfScope } from '../../dashboard/src/pages/keys/scope-calls.ts'
import packageJson from '../../package.json' with { type: 'json' }
import {
  type Document,
  judgeOf,
  type Media,
  type Operation,
  operationsOf,
  readDocument,
  type Schema,
} from './document.ts'
import { setStage } from './stage.ts'

const stage = await setStage({ after })
const document = await readDocument(stage.base)
const written = await Promise.all(
  ['/openapi.json', '/app/openapi.json'].map(async (path) => {
    const text = await (await fetch(stage.base + path)).text()
    return { path, text, document: JSON.parse(text) as Document }
  }),
)
const operations = operationsOf(document)
const judge = (schema: Schema) => judgeOf(document, schema)

// The statuses that the specification's tables publish, if they list any.
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

test('check 71: the document has the decided operations, and no others', () => {
  assert.equal(document.openapi, '3.1.0')
  assert.equal(document.info.version, '0.1.0-private-beta')
  assert.equal(packageJson.version, document.info.version)
  const names = ({ method, path }: { method: string; path: string }) => `${method} ${path}`
  assert.deepEqual(operations.map(names).sort(), decided.map(([method, path]) => `${method} ${path}`).sort())
})

for (const [method, path, statuses] of decided)
  test(`check 71: ${method} ${path} documents its errors`, () => {
    const { responses, security, operationId, summary } = document.paths[path]![method.toLowerCase()]!
    assert.ok(operationId && summary && security.length >= 1)
    const documented = Object.keys(responses).filter((status) => Number(status) >= 400)
    for (const status of ['400', '401', '403', '429', '500', '503']) assert.ok(documented.includes(status))
    // Any operation with a body can refuse a body as too large.
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

test('the form of a key lists the calls that each scope allows', () => {
  const calls: Record<string, string[]> = {}
  for (const [path, ofPath] of Object.entries(document.paths))
    for (const [method, { 'x-scopes': scopes }] of Object.entries(ofPath))
      for (const scope of scopes) (calls[scope] ??= []).push(`${method.toUpperCase()} ${path}`)
  assert.deepEqual(callsOfScope, calls)
})

test('every reference resolves, every shared part is used, and operation names are unique', () => {
  for (const { document } of written) {
    const used = new Set<string>()
    for (const { $ref } of everySchema(document)) {
      if ($ref === undefined) continue
      const [, kind, name] =
        /^#\/components\/(schemas|headers|responses|parameters)\/([\w-]+)$/.exec($ref) ?? []
      assert.ok(kind && name && document.components[kind as 'schemas'][name], $ref)
      used.add(`${kind} ${name}`)
    }
    for (const kind of ['responses', 'parameters', 'headers'] as const)
      for (const name of Object.keys(document.components[kind])) assert.ok(used.has(`${kind} ${name}`), name)
  }
  const names = operations.map(({ operation }) => operation.operationId)
  assert.equal(new Set(names).size, names.length)
})

/** Schemas whose use in a request or an answer already has an example. */
const shown = new Set(
  everySchema([document.paths, document.webhooks]).flatMap(({ schema, examples }) =>
    examples ? [(schema as Schema | undefined)?.$ref?.split('/').at(-1)] : [],
  ),
)

/** Schemas that the request body itself describes. */
const described = new Set(
  operations.flatMap(({ operation: { requestBody: body } }) =>
    body?.description ? [body.content['application/json']!.schema.$ref!.split('/').at(-1)] : [],
  ),
)

for (const [name, schema] of Object.entries(document.components.schemas))
  test(`the examples of ${name} match its schema`, () => {
    assert.equal(schema.description === undefined, described.has(name))
    assert.ok(shown.has(name) || schema.examples?.length || name === 'NextCursor')
    const judged = judge(schema)
    for (const example of schema.examples ?? []) {
      const [isRight, errors] = judged.Errors(example)
      assert.ok(isRight, JSON.stringify(errors))
    }
  })

/** Returns every media type of an operation with its examples. */
function mediaOf({ requestBody, responses }: Operation): { place: string; type: string; media: Media }[] {
  return Object.entries({ request: requestBody, ...responses }).flatMap(([place, holder]) =>
    Object.entries(holder?.content ?? {}).map(([type, media]) => ({ place, type, media })),
  )
}

for (const { method, path, operation } of operations)
  test(`check 71: ${method} ${path} has examples that match its schemas`, () => {
    for (const { place, type, media } of mediaOf(operation)) {
      const examples = Object.entries(media.examples ?? {})
      // Any bytes would be valid here.
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

test('every answer documents its headers, and sends them', async () => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox('headers')
  for (const { method, path, operation } of operations)
    for (const [status, { headers = {} }] of Object.entries(operation.responses)) {
      const names = Object.keys(headers)
      assert.ok(names.includes('x-request-id'), `${method} ${path} ${status}`)
      assert.equal(names.includes('retry-after'), ['423', '429', '503'].includes(status))
      assert.equal(names.includes('RateLimit'), !['401', '503'].includes(status))
    }
  const { headers } = await api.call(`/v1/inboxes/${inbox.id}`)
  for (const name of Object.keys(document.paths['/v1/inboxes/{inboxId}']!['get']!.responses['200']!.headers!))
    assert.ok(headers.has(name), name)
})

test('a common linter finds nothing in the document', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source: written[0]!.text, config })
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
    [],
  )
})

// Programs receive the whole document, and models pay for it on every run. 3.35 bytes are one token.
const mostBytes = 240_000
const mostTokens = 70_000
for (const { path, text, document } of written)
  test(`${path} stays within its size, and writes no error twice`, () => {
    const size = Buffer.byteLength(text)
    assert.ok(size <= mostBytes && (path.startsWith('/app') || size / 3.35 <= mostTokens), `${size} bytes`)
    const refusals = Object.values(document.components.responses).map((response) => JSON.stringify(response))
    assert.equal(new Set(refusals).size, refusals.length)
    for (const { operation } of operationsOf(document))
      for (const [status, response] of Object.entries(operation.responses))
        assert.equal('$ref' in response, status >= '400', `${operation.operationId} ${status}`)
  })

test('the description of every operation begins with its scope', () => {
  for (const { operation } of operations) {
    const [head] = operation.description.split('\n\n')
    const words = operation['x-scopes'].map((scope) => `\`${scope}\``).join(' or ')
    assert.equal(head, `Scope: ${words || 'none, any key will do'}.`)
  }
})

test('stream and webhook events are a choice by type, with a distinct body for each', () => {
  const types = (name: string) => {
    const { oneOf, discriminator } = document.components.schemas[name] as {
      oneOf: { $ref: string }[]
      discriminator: { propertyName: string; mapping: Record<string, string> }
    }
    assert.equal(discriminator.propertyName, 'type')
    assert.deepEqual(
      Object.values(discriminator.mapping),
      oneOf.map(({ $ref }) => $ref),
    )
    for (const [type, $ref] of Object.entries(discriminator.mapping)) {
      const { properties, required } = document.components.schemas[$ref.split('/').at(-1)!]!
      assert.deepEqual(properties!['type']!.enum, [type])
      assert.ok(required!.includes('type'))
    }
    return Object.keys(discriminator.mapping).sort()
  }
  const called = Object.keys(document.webhooks)
  assert.deepEqual(types('WebhookEvent'), called.toSorted())
  const streamed = called.filter((type) => type !== 'webhook.test')
  assert.deepEqual(types('StreamEvent'), [...streamed, 'stream.reset'].sort())
  const stream = document.paths['/v1/events']!['get']!.responses['200']!.content!['text/event-stream']!
  assert.deepEqual(stream.schema, { $ref: '#/components/schemas/StreamEvent' })
})

test('RFC 9110 9.3.2: every public GET also answers HEAD, without a body', async () => {
  for (const path of ['/openapi.json', '/docs', '/docs/script.js']) {
    const [got, headed] = [await fetch(stage.base + path), await fetch(stage.base + path, { method: 'HEAD' })]
    assert.deepEqual([got.status, headed.status], [200, 200])
    assert.equal(headed.headers.get('content-type'), got.headers.get('content-type'))
    assert.ok(Number(headed.headers.get('content-length')) > 0)
    assert.equal(headed.headers.get('content-length'), got.headers.get('content-length'))
    assert.equal(await headed.text(), '')
  }
})

test('/docs/ leads to /docs', async () => {
  const { status, headers } = await fetch(`${stage.base}/docs/`, { redirect: 'manual' })
  assert.deepEqual([status, headers.get('location')], [308, '/docs'])
})

test('check 65: the page at /docs loads nothing from another host', async () => {
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
