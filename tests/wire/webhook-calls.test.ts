// Tests webhook calls on the wire: hostile receivers, names that change their address, and strict TLS.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createSafeServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { isPublicUnicast } from '../../src/dns/public-address.ts'
import { AddressGuard } from '../../src/webhook/address-guard.ts'
import { Poster } from '../../src/webhook/post.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const never = new AbortController().signal
const inside = { isPublic: isPublicUnicast, allowPrivateNetworks: true, isDevelopment: false }

interface Names {
  lookup?: (host: string) => Promise<string[]>
  guard?: AddressGuard
  timeoutMs?: number
}

function makePoster(t: TestContext, { lookup, guard, timeoutMs = 15_000 }: Names = {}) {
  const deps = {
    guard: guard ?? new AddressGuard(inside),
    lookup: lookup ?? (async () => ['127.0.0.1']),
    timeoutMs,
  }
  const poster = new Poster(deps)
  t.after(() => poster.close())
  return (url: string) => poster.post(url, {}, '{}', never)
}

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  return (server.address() as AddressInfo).port
}

test('check 83: any answer is read within bounds and becomes a result', async (t) => {
  const receiver = await startReceiver(t)
  const post = makePoster(t, { timeoutMs: 500 })
  receiver.answer('/created', (response) => response.writeHead(201).end('ok\0ok'))
  receiver.answer('/error', (response) => response.writeHead(500).end('no'))
  receiver.answer('/reset', (_response, _call, request) => request.socket.destroy())
  receiver.answer('/never', () => {})
  receiver.answer('/drip', (response) => void response.writeHead(200).write('a'))
  receiver.answer('/header', (response) => response.writeHead(200, { long: 'x'.repeat(20_000) }).end())
  const of = (path: string) => post(receiver.url(path))
  assert.deepEqual(await of('/created'), { status: 201, body: 'ok\uFFFDok', error: null })
  assert.deepEqual(await of('/error'), { status: 500, body: 'no', error: 'the receiver answered 500' })
  assert.equal((await of('/reset')).error, 'the connection was closed before an answer')
  assert.deepEqual(await of('/never'), { status: null, body: null, error: 'no answer within 0.5 s' })
  assert.deepEqual(await of('/drip'), { status: 200, body: 'a', error: null })
  assert.equal((await of('/header')).error, 'the answer has too large a header')
})

test('check 83: only the beginning of an answer of 10 GB is read', async (t) => {
  const receiver = await startReceiver(t)
  let written = 0
  receiver.answer('/', (response) => {
    response.writeHead(200, { 'content-length': 10e9 })
    const more = () => {
      do written += 65_536
      while (!response.destroyed && response.write(Buffer.alloc(65_536, 97)))
    }
    response.on('drain', more)
    more()
  })
  const answer = await makePoster(t)(receiver.url())
  assert.deepEqual(answer, { status: 200, body: 'a'.repeat(2048), error: null })
  assert.ok(written < 50e6, `${written} bytes were taken`)
})

test('check 81: a redirect is a failure and is not followed', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer('/', (response) => response.writeHead(307, { location: receiver.url('/inside') }).end())
  const answer = await makePoster(t)(receiver.url())
  assert.equal(answer.error, 'the receiver answered 307; redirects are not followed')
  assert.deepEqual(receiver.callsOf('/inside'), [])
})

/** Returns a guard to which only 192.0.2.0/24 is public. */
function strangeGuard(): AddressGuard {
  return new AddressGuard({
    ...inside,
    allowPrivateNetworks: false,
    isPublic: (ip) => ip.startsWith('192.0.2.'),
  })
}

test('check 80: no literal and no name leads to a private address', async (t) => {
  const receiver = await startReceiver(t)
  const addresses = [
    ...[
      '127.0.0.1',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.0.1',
      '169.254.169.254',
      '100.64.0.1',
      '0.0.0.0',
      '224.0.0.1',
    ],
    ...[
      '240.0.0.1',
      '::1',
      '::',
      'fc00::1',
      'fe80::1',
      '::ffff:127.0.0.1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
    ],
  ]
  const guard = new AddressGuard({ ...inside, allowPrivateNetworks: false })
  for (const address of addresses) {
    const post = makePoster(t, { guard, lookup: async () => [address] })
    const { error } = await post(`https://hook.example.com:${receiver.port}/`)
    assert.equal(error, 'the host has no public address', address)
    const literal = address.includes(':') ? `[${address}]` : address
    assert.match((await post(`https://${literal}:${receiver.port}/`)).error ?? '', /^the URL must/, literal)
  }
  assert.equal(receiver.connections(), 0)
})

test('check 81: a name is looked up once for a call, which connects to the checked address', async (t) => {
  const receiver = await startReceiver(t)
  let asked = 0
  // The first answer is a public address, the second is loopback. A second lookup would let the call through.
  const lookup = async () => (asked++ === 0 ? ['192.0.2.1'] : ['127.0.0.1'])
  const post = makePoster(t, { guard: strangeGuard(), lookup, timeoutMs: 300 })
  assert.notEqual((await post(`https://hook.example.com:${receiver.port}/`)).error, null)
  assert.equal(asked, 1)
  const second = await post(`https://hook.example.com:${receiver.port}/`)
  assert.equal(second.error, 'the host has no public address')
  assert.equal(receiver.connections(), 0)
})

test('check 81: only the public one of two addresses is tried', async (t) => {
  const receiver = await startReceiver(t)
  const post = makePoster(t, {
    guard: strangeGuard(),
    lookup: async () => ['127.0.0.1', '192.0.2.1'],
    timeoutMs: 300,
  })
  assert.notEqual((await post(`https://hook.example.com:${receiver.port}/`)).error, null)
  assert.equal(receiver.connections(), 0)
})

const cert = readFileSync(new URL('../fixtures/tls-cert.pem', import.meta.url), 'utf8')
const key = readFileSync(new URL('../fixtures/tls-key.pem', import.meta.url), 'utf8')

test('webhooks: a call verifies the TLS certificate’s name and issuer', async (t) => {
  const server = createSafeServer({ cert, key }, (request, response) => {
    request.resume()
    response.end('safe')
  })
  const port = await listen(t, server)
  assert.match((await makePoster(t)(`https://mx.test:${port}/`)).error ?? '', /^TLS: /)
  const before = getCACertificates('default')
  setDefaultCACertificates([cert])
  t.after(() => setDefaultCACertificates(before))
  assert.deepEqual(await makePoster(t)(`https://mx.test:${port}/`), {
    status: 200,
    body: 'safe',
    error: null,
  })
  assert.match((await makePoster(t)(`https://other.example.com:${port}/`)).error ?? '', /^TLS: .*altnames/i)
  server.closeAllConnections()
})

test('webhooks: an answer that is not HTTP or TLS is reported as such', async (t) => {
  const port = await listen(
    t,
    createTcpServer((socket) => socket.on('error', () => {}).end('SSH-2.0-OpenSSH\r\n')),
  )
  assert.equal((await makePoster(t)(`http://a.test:${port}/`)).error, 'the answer is not HTTP')
  assert.match((await makePoster(t)(`https://a.test:${port}/`)).error ?? '', /^TLS: /)
})
