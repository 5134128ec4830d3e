// A stop answers pending requests, and idle connections do not delay it. Load balancers see it on `/readyz`.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { freePort } from '../support/free-port.ts'
import { makePlace, startNode } from '../support/node.ts'
import { startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

/** The response of `/readyz`; null if no process listens there. */
async function readyz(port: number): Promise<{ code: number; status: string } | null> {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null)
  return response && { code: response.status, ...((await response.json()) as { status: string }) }
}

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}

test('/readyz is 503 until the API and SMTP accept connections', async (t) => {
  // A node of its own, because the test watches its start.
  const [http, smtp, operator] = [await freePort(), await freePort(), await freePort()]
  const ports = { POSTHORN_HTTP: http, POSTHORN_SMTP: smtp, POSTHORN_OPERATOR: operator }
  const env = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, `127.0.0.1:${port}`]))
  const started = startNode(await makePlace(t), { env })
  const seen = new Set<string>()
  const ready = until(
    'the node to be ready',
    async () => {
      const answer = await readyz(operator)
      if (answer) seen.add(`${answer.code} ${answer.status}`)
      return answer?.code === 200
    },
    { everyMs: 1 },
  ).then(async () => [await takesConnections(http), await takesConnections(smtp)])
  const [taken] = await Promise.all([ready, started])
  assert.deepEqual(taken, [true, true])
  assert.deepEqual([...seen], ['503 starting', '200 ready'])
})

const fixture = (name: string) => join(import.meta.dirname, '../fixtures', name)
const withHttps = {
  POSTHORN_HTTPS: '127.0.0.1:0',
  POSTHORN_SMTP_TLS_CERT: fixture('tls-cert.pem'),
  POSTHORN_SMTP_TLS_KEY: fixture('tls-key.pem'),
}
const ways = {
  http: (port: number) => connect(port, '127.0.0.1'),
  https: (port: number) => connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false }),
}

for (const [scheme, open] of Object.entries(ways))
  test(`a stop answers a request under way, and does not wait for its kept connection: ${scheme}`, async (t) => {
    // A node of its own, because it is stopped.
    const node = await startNode(await makePlace(t), { env: withHttps, roles: ['api'] })
    const { secret } = await node.createCaller()
    const socket = open(node.app.listening[scheme as keyof typeof ways]!.port)
    t.after(() => socket.destroy())
    let answer = ''
    socket.on('data', (bytes) => (answer += bytes))
    const ended = once(socket, 'end')
    const head = `POST /v1/inboxes HTTP/1.1\r\nhost: a.test\r\nx-api-key: ${secret}\r\ncontent-type: application/json\r\n`
    socket.write(`${head}content-length: 2\r\nexpect: 100-continue\r\n\r\n`)
    await until('the request to be under way', () => answer.startsWith('HTTP/1.1 100 '))
    let hasStopped = false
    const stopped = node.stop().then(() => (hasStopped = true))
    assert.deepEqual(await readyz(node.app.listening.operator.port), { code: 503, status: 'draining' })
    // By then, connections without a request are closed.
    await sleep(2_500)
    socket.write('{}')
    // Otherwise it would be cut after 20 s.
    await until('the stop', () => hasStopped, { timeoutMs: 10_000 })
    await Promise.all([stopped, ended])
    assert.match(answer, /\r\nHTTP\/1\.1 201 /)
  })

test('connections without a request do not delay a stop', async (t) => {
  // A node of its own, because it is stopped.
  const node = await startNode(await makePlace(t), { env: withHttps, roles: ['api'] })
  const { http, https } = node.app.listening
  const spare = [ways.http(http!.port), ways.http(https!.port)]
  const encrypted = ways.https(https!.port)
  t.after(() => [...spare, encrypted].forEach((socket) => void socket.destroy()))
  await Promise.all([...spare.map((socket) => once(socket, 'connect')), once(encrypted, 'secureConnect')])
  let hasStopped = false
  const stopped = node.stop().then(() => (hasStopped = true))
  // Otherwise they would be cut after 20 s.
  await until('the stop', () => hasStopped, { timeoutMs: 10_000 })
  await stopped
})

test('a load balancer has the drain delay to see the stop before the listeners close', async (t) => {
  // A node of its own, because it is stopped.
  const env = { POSTHORN_DRAIN_DELAY: '3s' }
  const node = await startNode(await makePlace(t), { env, roles: ['api', 'mx'] })
  const { http, smtp, operator } = node.app.listening
  const taken = () => Promise.all([takesConnections(http!.port), takesConnections(smtp!.port)])
  const stopped = node.stop()
  assert.deepEqual(await readyz(operator.port), { code: 503, status: 'draining' })
  assert.deepEqual(await taken(), [true, true])
  await stopped
  assert.deepEqual(await taken(), [false, false])
})

test('a signal that arrives twice at once, as from terminal and npm, stops the service in order', async (t) => {
  const posthorn = await startPosthorn(t, { roles: 'api' })
  process.kill(posthorn.pid, 'SIGINT')
  assert.equal(await posthorn.stop(), 0)
})

test('a signal during the start ends the service in order, and its PostgreSQL too', async (t) => {
  // A service of its own, because its start is interrupted.
  const posthorn = await startPosthorn(t)
  await posthorn.stop()
  const interrupted = posthorn.start().catch(() => {})
  await until('PostgreSQL to run', () => posthorn.postgresPid() !== null)
  assert.equal(await posthorn.stop(), 0)
  await interrupted
  assert.equal(posthorn.postgresPid(), null)
})
