// Bounds on requests: the bytes of bodies, limited by share while they arrive, and the connections of an address.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { ByteBudget } from '../../src/http/body/byte-budget.ts'
import { nextKey } from '../http/sending.ts'
import { ask, setStage } from '../http/stage.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

const mebibyte = 1 << 20
const stage = await setStage({ after })
const json = { 'content-type': 'application/json' }

/** Opens a connection that sends this text, and records everything that it receives. */
function open(t: TestContext, port: number, said: string): { socket: Socket; told(): string } {
  const socket = connect(port, '127.0.0.1')
  let told = ''
  socket.on('data', (chunk) => (told += chunk)).on('error', () => {})
  socket.write(said)
  t.after(() => socket.destroy())
  return { socket, told: () => told }
}

const head = (path: string, key: string, lengthBytes: number) =>
  [
    ...[`POST ${path} HTTP/1.1`, 'host: x', `x-api-key: ${key}`, 'content-type: application/json'],
    ...[`idempotency-key: ${nextKey()}`, `content-length: ${lengthBytes}`, '', ''],
  ].join('\r\n')

test('hostile 8: 60 unfinished requests of 15 MiB hold a share of the memory, and others are answered', async (t) => {
  const posthorn = await startPosthorn(t)
  const port = Number(new URL(posthorn.http).port)
  const [one, other] = [await createCaller(posthorn), await createCaller(posthorn)]
  const [inbox, theirs] = [await one.api.createInbox(), await other.api.createInbox()]
  const { secret } = one
  const rssMb = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${posthorn.pid}/status`, 'utf8'))![1]) / 1024
  const send = () =>
    other.api.call(`/v1/inboxes/${theirs.id}/messages`, {
      method: 'POST',
      idempotencyKey: nextKey(),
      body: { to: [{ email: 'a@far.test' }], subject: 'S', text: 'x'.repeat(2 * mebibyte) },
    })
  assert.equal((await send()).status, 202)
  const idleMb = rssMb()
  const length = 15 * mebibyte
  const part = Buffer.alloc(mebibyte, 'x')
  const path = `/v1/inboxes/${inbox.id}/messages`
  const requests = Array.from({ length: 60 }, () => open(t, port, head(path, secret, length)))
  let mostMb = 0
  for (let sent = mebibyte; sent < length; sent += mebibyte) {
    for (const { socket } of requests) socket.write(part)
    await until('what was written to be taken', () =>
      requests.every(({ socket }) => socket.writableLength === 0),
    )
    mostMb = Math.max(mostMb, rssMb())
  }
  assert.equal((await send()).status, 202)
  mostMb = Math.max(mostMb, rssMb())
  t.diagnostic(`${Math.round(idleMb)} MB before, ${Math.round(mostMb)} MB at most`)
  // 64 MiB are held. The rest awaits garbage collection, which varies by machine load.
  const writtenMb = (requests.length * (length - mebibyte)) / mebibyte
  assert.ok(mostMb - idleMb < writtenMb / 2, `${mostMb} MB after ${idleMb} MB, of ${writtenMb} MB written`)
  // Requests without room get their refusal once they have sent everything.
  for (const { socket } of requests) socket.write(part)
  const refused = () => requests.filter(({ told }) => told().startsWith('HTTP/1.1 429 '))
  await until('most of them to be refused', () => refused().length >= 55, { timeoutMs: 30_000 })
  const [{ told } = { told: () => '' }] = refused()
  assert.match(told(), /retry-after: \d/)
  assert.match(told(), /"error":"rate_limited"/)
})

test('hostile 8: no body is read before its key is known', async (t) => {
  const { socket, told } = open(t, stage.port, head('/v1/inboxes', 'ph_wrong', 15 * mebibyte))
  await until('the answer', () => told().startsWith('HTTP/1.1 401 '))
  socket.destroy()
})

test('hostile 8: a stalled body is refused after ten seconds', async (t) => {
  const { secret } = await stage.createCaller()
  const { told } = open(t, stage.port, `${head('/v1/inboxes', secret, 100)}{`)
  const startedMs = performance.now()
  await until('the answer', () => told() !== '', { timeoutMs: 30_000 })
  assert.match(told(), /^HTTP\/1\.1 400 .*"error":"invalid_json","message":"The body arrived too slowly\."/s)
  assert.ok(performance.now() - startedMs > 9_000)
})

test('hostile 8: a body in chunks of one byte is read whole', async (t) => {
  const { secret } = await stage.createCaller()
  const text = JSON.stringify({ displayName: 'Grüße' })
  const chunked = head('/v1/inboxes', secret, 0).replace('content-length: 0', 'transfer-encoding: chunked')
  const { socket, told } = open(t, stage.port, chunked)
  for (const byte of Buffer.from(text))
    socket.write(Buffer.concat([Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]))
  socket.write('0\r\n\r\n')
  await until('the answer', () => told().includes('displayName'))
  assert.match(told(), /^HTTP\/1\.1 201 .*Grüße/s)
})

test('check 73: operations other than sends accept bodies of 64 KiB, and a hundred addresses in any spelling', async () => {
  const { secret } = await stage.createCaller()
  const post = (path: string, body: string) => ask(stage, 'POST', path, { secret, headers: json, body })
  const padded = (bytes: number) => `{"email":"a@far.test"${' '.repeat(bytes - 22)}}`
  for (const path of ['/v1/validate', '/v1/suppressions', '/v1/inboxes']) {
    assert.notEqual((await post(path, padded(64 * 1024))).status, 413)
    const refused = await post(path, padded(64 * 1024 + 1))
    assert.deepEqual([refused.status, refused.body.error], [413, 'payload_too_large'])
  }
  const emails = `["${Array(100).fill('\\ud83e\\udd80'.repeat(320)).join('","')}"]`
  assert.equal((await post('/v1/validate/bulk', `{"emails":${emails}}`)).status, 200)
})

for (const [name, text, held] of [
  ['made whole', `repeat(U&'\\0001', 1000000)`, 6_000_800],
  ['streamed', `repeat('x', 6000000)`, mebibyte],
] as const)
  test(`hostile 8: large answers that no client reads count as well: ${name}`, async (t) => {
    const { api, secret } = await stage.createCaller()
    const inbox = await api.createInbox()
    const body = { to: [{ email: 'a@far.test' }], subject: 'S', text: 'T' }
    const sent = await api.want<{ message: { id: string } }>(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      idempotencyKey: nextKey(),
      status: 202,
      body,
    })
    await stage.db.query(`update message set text = ${text} where id = $1`, [sent.message.id])
    const path = `/v1/inboxes/${inbox.id}/messages`
    const get = `GET ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${secret}\r\n\r\n`
    const fitting = Math.floor((64 * mebibyte) / held)
    const readers: ReturnType<typeof open>[] = []
    // One after another: each reads megabytes from the database, and they would wait for its connections.
    for (let n = 0; n < fitting + 2; n++) {
      const reader = open(t, stage.port, get)
      reader.socket.once('data', () => reader.socket.pause())
      await until('an answer', () => reader.told() !== '')
      readers.push(reader)
    }
    const statuses = readers.map((reader) => reader.told().slice(0, 'HTTP/1.1 200'.length))
    assert.deepEqual(statuses.slice(-3), ['HTTP/1.1 200', 'HTTP/1.1 429', 'HTTP/1.1 429'])
    for (const { socket } of readers) socket.destroy()
    const again = await until('room', async () => {
      const answer = await ask(stage, 'GET', path, { secret })
      return answer.status === 200 || null
    })
    assert.ok(again)
  })

test('a budget gives one asker at most a quarter, and leaves room for newcomers', () => {
  const budget = new ByteBudget(1200)
  assert.equal(budget.take('a', 300), null)
  assert.equal(budget.take('a', 1), 'share')
  for (const name of 'bcdefgh') while (budget.take(name, 1) === null);
  assert.equal(budget.take('b', 1), 'full')
  assert.equal(budget.take('new', 20), null)
  budget.give('a', 300)
  budget.give('new', 20)
  assert.equal(budget.take('a', 100), null)
})

test('hostile 8: one address holds 2,000 connections, and a trusted proxy any number', async (t) => {
  const proxied = await setStage(t, { trustedProxies: ['127.0.0.2/32'] })
  const dial = (localAddress: string) => {
    const socket = connect({ port: proxied.port, host: '127.0.0.1', localAddress })
    t.after(() => socket.destroy())
    return new Promise<boolean>((resolve) => {
      let isAnswered = false
      const write = () => socket.write('GET /none HTTP/1.1\r\nhost: x\r\n\r\n')
      socket.on('connect', write).on('error', () => {})
      socket.on('data', () => resolve((isAnswered = true)))
      socket.on('close', () => isAnswered || resolve(false))
    })
  }
  const answers = await Promise.all(Array.from({ length: 2_020 }, () => dial('127.0.0.1')))
  assert.equal(answers.filter(Boolean).length, 2_000)
  assert.equal(await dial('127.0.0.3'), true)
  const trusted = await Promise.all(Array.from({ length: 2_020 }, () => dial('127.0.0.2')))
  assert.equal(trusted.filter(Boolean).length, 2_020)
})
