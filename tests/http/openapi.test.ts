// The document: complete, valid in itself, true of what the server answers, and the page that shows it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { Compile, type Validator } from 'typebox/schema'
import { ask, setStage } from './stage.ts'

interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  examples?: unknown[]
  [keyword: string]: unknown
}
interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  schema: Schema
}
interface Operation {
  operationId: string
  summary: string
  tags: string[]
  security: object[]
  parameters?: Parameter[]
  requestBody?: { content: { 'application/json': { schema: Schema } } }
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>
}
interface Document {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const stage = await setStage({ after })
const document = (await (await fetch(`${stage.base}/openapi.json`)).json()) as Document
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)

// The published statuses of the specification's tables, where it has them.
const inSlice: [method: string, path: string, statuses?: string][] = [
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

test('check 71: the document has the operations of this slice, and no others', () => {
  assert.equal(document.openapi, '3.1.0')
  assert.equal(document.info.version, '0.1.0-private-beta')
  const names = ({ method, path }: { method: string; path: string }) => `${method} ${path}`
  assert.deepEqual(operations.map(names).sort(), inSlice.map(([method, path]) => `${method} ${path}`).sort())
})

for (const [method, path, statuses] of inSlice)
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

/** The stream has no end to wait for. */
const endless = '/v1/events'

function everySchema(value: unknown, found: Schema[] = []): Schema[] {
  if (value === null || typeof value !== 'object') return found
  if (!Array.isArray(value)) found.push(value as Schema)
  for (const member of Object.values(value)) everySchema(member, found)
  return found
}

test('every reference leads somewhere, and no two operations share a name', () => {
  for (const { $ref } of everySchema(document)) {
    if ($ref === undefined) continue
    const name = /^#\/components\/schemas\/(\w+)$/.exec($ref)?.[1]
    assert.ok(name && document.components.schemas[name], $ref)
  }
  const names = operations.map(({ operation }) => operation.operationId)
  assert.equal(new Set(names).size, names.length)
})

/** A judge of a schema of the document; references are written in place, for they lead into the whole document. */
function judge(schema: Schema): Validator {
  return Compile(inPlace(schema) as never) as unknown as Validator
}

function inPlace(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(inPlace)
  const { $ref } = value as Schema
  if (typeof $ref === 'string') return inPlace(document.components.schemas[$ref.split('/').at(-1)!])
  return Object.fromEntries(
    Object.entries(value)
      .filter(([keyword]) => keyword !== 'examples' && keyword !== '$id')
      .map(([keyword, member]) => [keyword, inPlace(member)]),
  )
}

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

test('check 71: requests made from the schemas get documented answers of the documented form, never a 5xx', async () => {
  const { secret, api } = await stage.createCaller()
  const inbox = await api.createInbox('fuzzed')
  const sent = await api.want<{ message: { id: string; threadId: string }; submission: { id: string } }>(
    `/v1/inboxes/${inbox.id}/messages`,
    {
      method: 'POST',
      idempotencyKey: 'fuzz-key-1',
      body: { to: [{ email: 'a@far.test' }], subject: 'S', text: 'T' },
      status: 202,
    },
  )
  const ids: Record<string, string> = {
    ...{
      inboxId: inbox.id,
      messageId: sent.message.id,
      threadId: sent.message.threadId,
      submissionId: sent.submission.id,
    },
  }
  const judges = new Map<string, Validator>()
  const judgeOf = (schema: Schema) => {
    const name = JSON.stringify(schema)
    if (!judges.has(name)) judges.set(name, judge(schema))
    return judges.get(name)!
  }
  // Deleting what the others need would leave nothing to ask for.
  const asked = operations.filter(({ method, path }) => method !== 'DELETE' && path !== endless)
  const requests = fc.constantFrom(...asked).chain(({ path, method, operation }) => {
    const parameters = operation.parameters ?? []
    const values = parameters.map(({ name, in: place, schema }) =>
      place === 'path'
        ? fc.oneof({ weight: 9, arbitrary: fc.constant(ids[name]!) }, fc.string())
        : anything(schema, name),
    )
    const content = operation.requestBody?.content['application/json'].schema
    const body = content ? arbitraryOf(content) : fc.constant(undefined)
    return fc
      .record({ given: fc.tuple(...values), body })
      .map(({ given, body }) => ({ path, method, operation, given, body }))
  })
  const property = fc.asyncProperty(requests, async ({ path, method, operation, given, body }) => {
    const headers: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const query = new URLSearchParams()
    let target = path
    for (const [index, { name, in: place }] of (operation.parameters ?? []).entries()) {
      const value = given[index]
      if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(String(value)))
      else if (value === undefined) continue
      else if (place === 'query') query.append(name, String(value))
      else headers[name] = String(value)
    }
    const answer = await ask(stage, method, `${target}?${query}`, {
      secret,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const documented = operation.responses[answer.status]
    // An empty or dotted segment leaves the operation's path.
    if (answer.body.error === 'route_not_found') return
    assert.ok(
      documented && answer.status < 500,
      `${method} ${target}?${query} is ${answer.status} ${JSON.stringify(answer.body)}`,
    )
    const schema = documented.content?.['application/json']?.schema
    const [isRight, errors] = schema ? judgeOf(schema).Errors(answer.body) : [true, []]
    assert.ok(isRight, `${method} ${target} ${answer.status} ${JSON.stringify(errors)}`)
  })
  await fc.assert(property, { numRuns: 300 })
})

function anything(schema: Schema, name: string): fc.Arbitrary<unknown> {
  if (name === 'idempotency-key')
    return fc.oneof(fc.stringMatching(/^[A-Za-z0-9._:-]{8,20}$/), fc.constantFrom(undefined, 'x'))
  return fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, arbitraryOf(schema), fc.string())
}

/** Mostly what the schema describes, at times what it does not. */
function arbitraryOf(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  if (schema.$ref) return arbitraryOf(document.components.schemas[schema.$ref.split('/').at(-1)!]!, depth)
  const stray = fc.jsonValue({ maxDepth: 2 })
  const right = rightValue(schema, depth)
  return fc.oneof({ weight: 30, arbitrary: right }, { weight: 1, arbitrary: stray })
}

function rightValue(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.format === 'idn-email' || schema.format === 'email')
    return fc.constantFrom('a@far.test', 'ü@bücher.test', '"a b"@far.test', 'a@b', '@')
  if (schema.format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toISOString())
  if (schema.pattern === '^msg_[a-f0-9]{24}$') return fc.stringMatching(/^msg_[a-f0-9]{24}$/)
  if (schema['contentEncoding'] === 'base64') return fc.base64String()
  if (schema.type === 'integer') return fc.integer({ min: -5, max: 110 })
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.type === 'array')
    return fc.array(arbitraryOf(schema.items!, depth + 1), { minLength: 1, maxLength: 4 })
  if (schema.type === 'object' && schema.properties) {
    const members = Object.entries(schema.properties).map(
      ([name, member]) => [name, arbitraryOf(member, depth + 1)] as const,
    )
    return fc.record(Object.fromEntries(members), { requiredKeys: schema.required ?? [] })
  }
  if (schema.type === 'object')
    return fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 0 }), { maxKeys: 3 })
  return fc.oneof(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string({ unit: 'binary' }))
}

test('check 65: the page at /docs loads nothing from anywhere else', async () => {
  const page = await fetch(`${stage.base}/docs`)
  const html = await page.text()
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /^default-src 'none'; script-src 'self' 'sha256-[^']+'; /)
  assert.doesNotMatch(policy, /https?:|unsafe-eval|\*|script-src[^;]*unsafe-inline/)
  assert.deepEqual(
    [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, target]) => target),
    ['/docs/script.js'],
  )
  assert.doesNotMatch(html, /https?:\/\//)
  const script = await fetch(`${stage.base}/docs/script.js`)
  assert.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.ok((await script.text()).length > 1_000_000)
})
