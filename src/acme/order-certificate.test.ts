// Tests an authority that lies: each of its answers becomes a value, in bounded time and memory.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { orderCertificate } from './order-certificate.ts'

const fixture = (name: string) =>
  readFileSync(new URL(`../../tests/fixtures/${name}`, import.meta.url), 'utf8')
const [cert, privateKey] = [fixture('tls-cert.pem'), fixture('tls-key.pem')]
const { privateKey: accountKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const key = accountKey.export({ type: 'pkcs8', format: 'pem' }).toString()

type Answer = (path: string, base: string, response: ServerResponse, request: IncomingMessage) => void

/** Answers correctly up to the account, and then as the test specifies. */
async function startAuthority(t: TestContext, answer: Answer): Promise<string> {
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, cert])
  t.after(() => setDefaultCACertificates(before))
  const server = createServer({ cert, key: privateKey }, (request, response) => {
    const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    const path = request.url ?? ''
    request.resume()
    response.setHeader('replay-nonce', 'bm9uY2U')
    if (path === '/dir') {
      const names = ['newNonce', 'newAccount', 'newOrder', 'revokeCert', 'keyChange']
      return response.end(
        writeJson(response, Object.fromEntries(names.map((name) => [name, `${base}/${name}`]))),
      )
    }
    if (path === '/newNonce') return response.end()
    if (path === '/newAccount') {
      response.writeHead(201, { location: `${base}/account`, 'content-type': 'application/json' })
      return response.end('{"status":"valid"}')
    }
    answer(path, base, response, request)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`
}

function writeJson(response: ServerResponse, value: unknown): string {
  response.setHeader('content-type', 'application/json')
  return JSON.stringify(value)
}

function order(directory: string, names: string[], stop = AbortSignal.timeout(5_000)) {
  const deps = { account: { directory, key }, email: 'a@b.test', publish: async () => {}, stop }
  return orderCertificate(deps, names, () => true)
}

const kinds: [string, Answer, RegExp][] = [
  ['nothing but a status', (_path, _base, response) => response.writeHead(500).end(), /./],
  ['no JSON', (_path, _base, response) => response.writeHead(201).end('<html>'), /order link|./],
  ['a list', (_path, _base, response) => response.writeHead(201, { location: '/x' }).end('[[[]]]'), /./],
  [
    'ten megabytes',
    (_path, _base, response) => response.writeHead(201, { location: '/x' }).end(Buffer.alloc(10 << 20, 32)),
    /maxContentLength/,
  ],
  [
    'a redirect to itself',
    (path, _base, response) => response.writeHead(307, { location: path }).end(),
    /redirect/i,
  ],
  ['a closed connection', (_path, _base, response) => response.destroy(), /./],
  [
    'controls in a reason',
    (_path, _base, response) => {
      response.statusCode = 403
      response.end(writeJson(response, { type: 'urn:x', detail: `no\u0000\u001b[31m ${'x'.repeat(5_000)}` }))
    },
    /^no \[31m x{400,500}$/,
  ],
  [
    'an order without authorizations, and without an end',
    (path, base, response) => {
      response.statusCode = path === '/newOrder' ? 201 : 200
      response.setHeader('location', `${base}/order`)
      response.end(
        writeJson(response, { status: 'processing', authorizations: [], finalize: `${base}/finalize` }),
      )
    },
    /aborted/,
  ],
]

for (const [what, answer, reason] of kinds)
  test(`an order fails if the authority answers with ${what}`, async (t) => {
    const directory = await startAuthority(t, answer)
    const startedMs = performance.now()
    const ordered = await order(directory, ['a.example', 'b.example'])
    assert.equal(ordered.status, 'failed')
    assert.match(ordered.status === 'failed' ? ordered.reason : '', reason)
    assert.ok(performance.now() - startedMs < 10_000)
  })

test('an order fails if the authority is unreachable or shows an untrusted certificate', async (t) => {
  const directory = await startAuthority(t, () => {})
  assert.equal((await order('https://127.0.0.1:1/dir', ['a.example'])).status, 'failed')
  setDefaultCACertificates(getCACertificates('default').filter((pem) => pem.trim() !== cert.trim()))
  const ordered = await order(directory, ['a.example'])
  assert.match(ordered.status === 'failed' ? ordered.reason : '', /self-signed|certificate/)
})

test('an order from a silent authority ends when the node stops, within 15 s', async (t) => {
  const directory = await startAuthority(t, (path, base, response) => {
    if (path !== '/newOrder') return
    response.writeHead(201, { location: `${base}/order`, 'content-type': 'application/json' })
    response.end(JSON.stringify({ status: 'pending', authorizations: [`${base}/silent`], finalize: base }))
  })
  const startedMs = performance.now()
  const ordered = await order(directory, ['a.example'])
  assert.equal(ordered.status, 'failed')
  const tookMs = performance.now() - startedMs
  t.diagnostic(`given up after ${Math.round(tookMs)} ms`)
  assert.ok(tookMs < 15_000)
})

test('the next order leaves out the names that the authority refused, and no others', async (t) => {
  const asked: string[][] = []
  const directory = await startAuthority(t, (path, _base, response, request) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      const { payload } = JSON.parse(body)
      const { identifiers } = JSON.parse(Buffer.from(payload, 'base64url').toString())
      if (path === '/newOrder') asked.push(identifiers.map(({ value }: { value: string }) => value))
      const first = asked.length === 1
      response.statusCode = first ? 400 : 429
      const detail = first
        ? 'Cannot issue for "B.example": forbidden by policy.'
        : 'too many certificates for example'
      response.end(writeJson(response, { type: 'urn:ietf:params:acme:error:rejectedIdentifier', detail }))
    })
  })
  const ordered = await order(directory, ['a.example', 'b.example', 'ab.example'])
  assert.deepEqual(asked, [
    ['a.example', 'b.example', 'ab.example'],
    ['a.example', 'ab.example'],
  ])
  assert.deepEqual(
    ordered.refused.map(({ name }) => name),
    ['b.example'],
  )
  assert.equal(ordered.status, 'failed')
})
