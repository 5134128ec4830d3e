// Tests the HTTPS listener: the same routes, a certificate replaced while running, and bounds shared by both listeners.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { checkListeners } from '../../src/cli/doctor/checks.ts'
import { makeSelfSigned } from '../../src/smtp/server/certificate.ts'
import { getExactly } from '../support/exact-get.ts'
import { makePlace, startNode } from '../support/node.ts'
import { showsByHttps, showsBySmtp } from '../support/shown-certificate.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const [certFile, keyFile] = [join(place.folder, 'cert.pem'), join(place.folder, 'key.pem')]
const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url))
writeFileSync(certFile, fixture('tls-cert.pem'))
writeFileSync(keyFile, fixture('tls-key.pem'))
const node = await startNode(place, {
  env: {
    POSTHORN_HTTP: '0.0.0.0:0',
    POSTHORN_HTTPS: '127.0.0.1:0',
    POSTHORN_SMTP_TLS_CERT: certFile,
    POSTHORN_SMTP_TLS_KEY: keyFile,
  },
  roles: ['api', 'mx'],
})
const { http, https, smtp } = node.app.listening
const hsts = 'strict-transport-security'

test('both listeners serve the same API, and only HTTPS makes browsers return by HTTPS', async () => {
  const { secret } = await node.createCaller()
  const headers = { 'x-api-key': secret }
  const [plain, safe] = await Promise.all(
    (['http', 'https'] as const).map((scheme) =>
      getExactly({ scheme, port: (scheme === 'http' ? http : https)!.port, path: '/v1/me', headers }),
    ),
  )
  assert.deepEqual([plain!.status, safe!.status], [200, 200])
  assert.equal(plain!.text, safe!.text)
  assert.deepEqual([plain!.headers[hsts], safe!.headers[hsts]], [undefined, 'max-age=31536000'])
  const missing = await getExactly({ scheme: 'https', port: https!.port, path: '/nowhere' })
  assert.deepEqual([missing.status, missing.headers[hsts]], [404, 'max-age=31536000'])
})

const outside = Object.values(networkInterfaces())
  .flat()
  .find((found) => found?.family === 'IPv4' && !found.internal)?.address

test('plain HTTP from elsewhere answers only under /.well-known/', {
  skip: !outside && 'no address but loopback',
}, async () => {
  const ask = (path: string) => getExactly({ port: http!.port, path, address: outside! })
  for (const path of ['/v1/me', '/docs', '/', '/.well-known', '/v1/../.well-known/x']) {
    const { status, text } = await ask(path)
    assert.equal(status, 404, path)
    assert.match(text, /use https/, path)
  }
  const policy = await getExactly({
    port: http!.port,
    path: '/.well-known/mta-sts.txt',
    address: outside!,
    host: 'mta-sts.inbox.test',
  })
  assert.equal(policy.status, 200)
})

test('a replaced certificate is shown at the next connection, with and without a name, and by SMTP', async () => {
  assert.match(String((await showsByHttps(https!.port)).subject.CN), /^mx\.test$/)
  const held = connectTls({ host: '127.0.0.1', port: https!.port, rejectUnauthorized: false })
  await once(held, 'secureConnect')
  const { cert, key } = await makeSelfSigned('new.test')
  writeFileSync(keyFile, key)
  writeFileSync(certFile, cert)
  const shows = async () =>
    [
      await showsByHttps(https!.port),
      await showsByHttps(https!.port, 'mx.test'),
      await showsBySmtp(smtp!.port),
    ]
      .map(({ subject }) => subject.CN)
      .join(' ')
  await until('the new one', async () => (await shows()) === 'new.test new.test new.test', { everyMs: 200 })
  held.write('GET /docs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  const [answer] = await once(held, 'data')
  assert.match(String(answer), /^HTTP\/1\.1 200 /, 'who was connected stays so')
  held.destroy()
})

test('a client without TLS, or without HTTP in it, is refused and blocks no one', async () => {
  const plain = connect(https!.port, '127.0.0.1')
  plain.on('error', () => {}).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(plain, 'close')
  const noise = connectTls({ host: '127.0.0.1', port: https!.port, rejectUnauthorized: false })
  noise.on('error', () => {})
  await once(noise, 'secureConnect')
  noise.write('NOISE\r\n\r\n')
  const [answer] = await once(noise, 'data')
  assert.match(String(answer), /^HTTP\/1\.1 400 /)
  noise.destroy()
  assert.equal((await getExactly({ scheme: 'https', port: https!.port, path: '/openapi.json' })).status, 200)
})

test('the doctor recognizes the listener, and another program in its place', async (t) => {
  const checks = await checkListeners({ ...node.foundation.settings, https: { ...https! } })
  const found = checks.find(({ name }) => name === 'HTTPS port')!
  assert.deepEqual([found.status, /a running Posthorn answers/.test(found.detail)], ['ok', true])
  const other = createServer((socket) => void socket.end('no')).listen(0, '127.0.0.1')
  t.after(() => void other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const taken = await checkListeners({ ...node.foundation.settings, https: { host: '127.0.0.1', port } })
  assert.match(taken.find(({ name }) => name === 'HTTPS port')!.detail, /in use by another program/)
})

test('TLS 1.1 is refused', async () => {
  const options = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
  const old = connectTls({ ...options, host: '127.0.0.1', port: https!.port, rejectUnauthorized: false })
  const [fault] = await once(old, 'error')
  assert.match(String(fault), /version|protocol/i)
})

test('one host may have 2,000 connections at both listeners together', { timeout: 60_000 }, async (t) => {
  const sockets: Socket[] = []
  const closed = new Set<number>()
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (let index = 0; index < 2_010; index++) {
    const { port } = (index % 2 === 0 ? http : https)!
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.7' })
    socket.on('error', () => {}).once('close', () => closed.add(index))
    sockets.push(socket)
    await once(socket, 'connect').catch(() => {}) // the server closes the last ones at once
  }
  await until('those past the bound to be closed', () => closed.size >= 10)
  assert.deepEqual(
    [...closed].sort((a, b) => a - b),
    Array.from({ length: 10 }, (_, index) => 2_000 + index),
  )
  const other = await getExactly({ scheme: 'https', port: https!.port, path: '/openapi.json' })
  assert.equal(other.status, 200, 'from another address')
})

test('a stop ends idle HTTPS connections', async () => {
  const idle = connectTls({ host: '127.0.0.1', port: https!.port, rejectUnauthorized: false })
  await once(idle, 'secureConnect')
  idle.on('error', () => {}).write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(idle, 'data')
  idle.resume()
  const ended = once(idle, 'close')
  const startedMs = performance.now()
  await node.stop()
  await ended
  assert.ok(performance.now() - startedMs < 15_000)
})
