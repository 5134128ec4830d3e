// The TypeScript SDK follows the scenarios that both SDKs share.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { readDocument, root } from '../../scripts/documents.ts'
import { writeOperations } from '../../scripts/sdk/typescript.ts'
import type { Clock } from '../../sdk/typescript/src/clock.ts'
import {
  type Content,
  Posthorn,
  type PosthornError,
  verifyWebhook,
} from '../../sdk/typescript/src/posthorn.ts'
import { type Got, ScriptedServer, type Step } from './scripted-server.ts'

interface Scenario {
  name: string
  client?: object
  server: Step[]
  call: {
    method: string
    on?: unknown
    ids?: string[]
    fields?: Record<string, unknown>
    options?: object
    take?: number | 'first'
  }
  want: Want
}

interface Want {
  value?: unknown
  values?: unknown[]
  of?: string
  items?: number
  error?: object
  waits?: number[]
  sameKey?: boolean
}

interface SignedCall {
  name: string
  secret: string
  nowSeconds: number
  headers: Record<string, string>
  body: string
  want: Want
}

interface Outcome {
  value?: unknown
  values?: unknown[]
  error?: PosthornError
}

const folder = 'sdk/typescript/src'
const { scenarios, webhooks } = JSON.parse(readFileSync(join(root, 'sdk/scenarios.json'), 'utf8')) as {
  scenarios: Scenario[]
  webhooks: SignedCall[]
}

/** Waiting takes no time, and is recorded. */
class TestClock implements Clock {
  readonly waits: number[] = []
  #nowMs = 0

  nowMs(): number {
    return this.#nowMs
  }

  async sleep(ms: number): Promise<void> {
    this.waits.push(ms)
    this.#nowMs += ms
  }

  random(): number {
    return 0.5
  }
}

for (const { name, client, server: steps, call, want } of scenarios)
  test(`sdk: ${name}`, async (t) => {
    const server = await ScriptedServer.start(steps)
    t.after(() => server.close())
    const clock = new TestClock()
    const options = { baseUrl: server.base, apiKey: 'ph_test', clock }
    const outcome = await observe(() => run(new Posthorn(Object.assign(options, client)), call))
    await compare(outcome, want)
    assert.deepEqual(
      server.got.map(({ method, path }) => `${method} ${path}`),
      server.steps.map(({ request }) => request),
    )
    for (const [index, got] of server.got.entries()) checkRequest(got, server.steps[index]!)
    checkPages(server)
    if (want.sameKey) checkKeys(server.got)
    assert.deepEqual(clock.waits, want.waits ?? [])
  })

for (const { name, secret, body, headers, nowSeconds, want } of webhooks)
  test(`sdk: ${name}`, async () => {
    for (const form of [body, new TextEncoder().encode(body)])
      await compare(
        await observe(async () => ({ value: await verifyWebhook(secret, form, headers, { nowSeconds }) })),
        want,
      )
  })

/** Calls the method. Values of an iteration that fails later are part of the outcome. */
async function run(client: Posthorn, call: Scenario['call']): Promise<Outcome> {
  const { method, on, ids = [], take = Number.POSITIVE_INFINITY } = call
  const [handle, ...path] = method.split('.')
  const isBound = on !== undefined
  const start = isBound ? (client[handle as 'inbox'](on as string) as object) : client
  const names = isBound ? path : [handle!, ...path]
  const owner = names.slice(0, -1).reduce((object, name) => object[name as never], start as object)
  const given = [...ids, revive(call.fields), call.options].filter((one) => one !== undefined)
  const result: unknown = (owner as Record<string, (...given: unknown[]) => unknown>)[names.at(-1)!]!(
    ...given,
  )
  if (take === 'first') return { value: await (result as { first(): Promise<unknown> }).first() }
  if (!(typeof result === 'object' && result !== null && Symbol.asyncIterator in result))
    return { value: await result }
  const values: unknown[] = []
  try {
    for await (const value of result as AsyncIterable<unknown>) if (values.push(value) === take) break
  } catch (error) {
    return { values, error: error as PosthornError }
  }
  return { values }
}

async function observe(act: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await act()
  } catch (error) {
    return { error: error as PosthornError }
  }
}

/** Makes bytes, streams and functions of their forms in JSON. */
function revive(fields: unknown): unknown {
  if (Array.isArray(fields)) return fields.map(revive)
  if (typeof fields !== 'object' || fields === null) return fields
  const { $bytes, $stream } = fields as { $bytes?: string; $stream?: string[] }
  if ($bytes !== undefined) return new Uint8Array(Buffer.from($bytes, 'base64'))
  if ($stream !== undefined)
    return ReadableStream.from($stream.map((piece) => new Uint8Array(Buffer.from(piece, 'base64'))))
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      name === 'match' ? (message: unknown) => includes(message, value) : revive(value),
    ]),
  )
}

async function compare({ value, values, error }: Outcome, want: Want): Promise<void> {
  if (error && !want.error) throw error
  assert.equal(error !== undefined, want.error !== undefined)
  if (want.error) assert.partialDeepStrictEqual(describe(error!), want.error)
  const { of = 'id' } = want
  const seen = values?.map((one) => (one as Record<string, unknown>)[of])
  if (want.values) assert.deepEqual(seen ?? [], want.values)
  if (want.items)
    assert.deepEqual(
      seen,
      Array.from({ length: want.items }, (_, index) => `item-${index + 1}`),
    )
  if (want.value === null) assert.equal(value, undefined)
  else if (want.value !== undefined) assert.partialDeepStrictEqual(await plain(value), want.value)
}

function describe(error: PosthornError): object {
  const { name, message, code, status, requestId, retryAfterSeconds, isTemporary } = error
  assert.equal(error.constructor.name, name)
  return { class: name, message, code, status, requestId, retryAfterSeconds, isTemporary }
}

/** A download with its bytes. */
async function plain(value: unknown): Promise<unknown> {
  if (typeof value !== 'object' || value === null || !('bytes' in value)) return value
  const { sizeBytes, filename, bytes } = value as {
    sizeBytes: number
    filename: string
    bytes(): Promise<Uint8Array>
  }
  return { sizeBytes, filename, bytes: Buffer.from(await bytes()).toString('base64') }
}

function checkRequest(got: Got, { query, headers = {}, json }: Step): void {
  if (query) assert.deepEqual(got.query, query)
  if (json !== undefined) assert.partialDeepStrictEqual(got.json, json)
  for (const [name, value] of Object.entries(headers)) assert.equal(got.headers[name] ?? null, value, name)
}

function checkPages({ got, steps }: ScriptedServer): void {
  for (const [index, { query }] of got.entries()) {
    const former = steps[index - 1]?.answer?.json as { nextCursor?: string } | undefined
    if (former?.nextCursor?.startsWith('page-')) assert.equal(query['cursor'], former.nextCursor)
  }
}

function checkKeys(got: Got[]): void {
  const keys = got.filter(({ method }) => method === 'POST').map(({ headers }) => headers['idempotency-key'])
  assert.match(String(keys[0]), /^[A-Za-z0-9._:-]{8,200}$/)
  assert.equal(new Set(keys).size, 1)
}

function includes(value: unknown, part: unknown): boolean {
  return Object.entries(part as object).every(
    ([name, wanted]) => (value as Record<string, unknown>)[name] === wanted,
  )
}

test('sdk: the operations are those of the present API, under the names of operations.json', async () => {
  const written = readFileSync(join(root, folder, 'operations.gen.ts'), 'utf8')
  assert.equal(written, writeOperations(await readDocument('/openapi.json')), 'run node scripts/api-types.ts')
})

test('sdk: only one file of the client uses modules of Node, and none reads the environment', () => {
  const files = globSync(`${folder}/*.ts`, { cwd: root }).sort()
  const using = files.filter((file) =>
    /from '(?!\.)|import\('|\bprocess\b|\bBuffer\b/.test(readFileSync(join(root, file), 'utf8')),
  )
  assert.deepEqual(using, [`${folder}/node.ts`])
})

test('sdk: an address, a key or an id that no request can carry is refused at once, without its value', async () => {
  const baseUrl = 'http://127.0.0.1:9'
  const wrong = [
    { baseUrl, apiKey: 'ph_secret\nph_b' },
    { baseUrl: 'http://user:ph_secret@127.0.0.1', apiKey: 'ph_a' },
    { baseUrl: 'ftp://127.0.0.1/ph_secret', apiKey: 'ph_a' },
  ]
  const isSilent = (error: Error) => error instanceof TypeError && !String(error.stack).includes('ph_secret')
  for (const options of wrong) assert.throws(() => new Posthorn(options), isSilent)
  const client = new Posthorn({ baseUrl, apiKey: 'ph_a' })
  for (const id of ['', '.', '..']) await assert.rejects(client.inboxes.get(id), isSilent)
  const key = { idempotencyKey: 'ph_secret\n1' }
  await assert.rejects(client.inboxes.create({ localPart: 'ada' }, key), isSilent)
  await assert.rejects(client.events.watch({ lastEventId: 'ph_secret\n1' }).next(), isSilent)
})

test('sdk: a stream of text is refused, and bytes of another realm are sent whole', async (t) => {
  const answer = { status: 202, json: {} }
  const server = await ScriptedServer.start([{ request: 'POST /v1/inboxes/inb_1/messages', answer }])
  t.after(() => server.close())
  const inbox = new Posthorn({ baseUrl: server.base, apiKey: 'ph_test' }).inbox('inb_1')
  const send = (content: Content) => {
    const attachments = [{ filename: 'a.bin', contentType: 'text/plain', content }]
    return inbox.messages.send({ to: [{ email: 'ada@a.test' }], subject: 'S', text: 'T', attachments })
  }
  await assert.rejects(send(Readable.from(['text'])), /must give bytes/)
  await send(runInNewContext('new Uint8Array([104, 105, 106]).subarray(1)') as Uint8Array)
  assert.partialDeepStrictEqual(server.got[0]!.json, { attachments: [{ content: 'aWo=' }] })
})

test('sdk: an event in many small pieces is read in linear time, and one that is too long is refused', async () => {
  const piece = new TextEncoder().encode('a'.repeat(1_024))
  let count = 0
  const body = () =>
    new ReadableStream<Uint8Array>({
      start: (stream) => stream.enqueue(new TextEncoder().encode('data: ')),
      pull: (stream) => {
        count++
        stream.enqueue(piece)
      },
    })
  const answer = async () => new Response(body(), { headers: { 'content-type': 'text/event-stream' } })
  const client = new Posthorn({ baseUrl: 'http://127.0.0.1:9', apiKey: 'ph_test', fetch: answer })
  await assert.rejects(client.events.watch().next(), { code: 'too_large' })
  assert.ok(count < 33 * 1_024)
})

test('sdk: a call ends with the reason of its signal, and is not repeated', async (t) => {
  const server = await ScriptedServer.start([{ request: 'GET /v1/me', hang: true }])
  t.after(() => server.close())
  const client = new Posthorn({ baseUrl: server.base, apiKey: 'ph_test' })
  const ending = new AbortController()
  const call = client.profile({ signal: ending.signal })
  ending.abort(new Error('enough'))
  await assert.rejects(call, /enough/)
})

test('sdk: a certificate that is not valid is named, and other failures of a host with such words are not', async (t) => {
  const [cert, key] = ['cert', 'key'].map((name) =>
    readFileSync(join(root, `tests/fixtures/tls-${name}.pem`)),
  )
  const server = createServer({ cert: cert!, key: key! })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const call = (baseUrl: string) =>
    new Posthorn({ baseUrl, apiKey: 'ph_test', clock: new TestClock() }).profile()
  await assert.rejects(call(`https://localhost:${port}`), { code: 'certificate_invalid', isTemporary: true })
  await assert.rejects(call('https://CERT-SELF_SIGNED.certificate.invalid'), { code: 'connection_failed' })
})
