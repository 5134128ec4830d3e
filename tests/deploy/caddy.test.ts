// Runs Caddy with deploy/'s file: long answers stream line by line, and the service sees the clients' addresses.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { Api } from '../support/api.ts'
import { openStream } from '../support/event-source.ts'
import { getExactly } from '../support/exact-get.ts'
import { freePort } from '../support/free-port.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'

const file = resolve(import.meta.dirname, '../../deploy/caddy/Caddyfile')
const missing = spawnSync('caddy', ['version']).status === 0 ? false : 'caddy is not installed'

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

/** Starts Caddy on a port of this machine for the service at `upstream`. It ends with the test. */
async function startCaddy(
  t: TestContext,
  folder: string,
  upstream: string,
): Promise<{ base: string; port: number }> {
  const [site, other] = [await freePort(), await freePort()]
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
    POSTHORN_SITE: `http://localhost:${site}`,
    POSTHORN_UPSTREAM: upstream,
  }
  const adapted = spawnSync('caddy', ['adapt', '--config', file], { env, encoding: 'utf8' })
  assert.equal(adapted.status, 0, adapted.stderr)
  // A test must not occupy the public ports.
  const config = { ...JSON.parse(adapted.stdout), admin: { disabled: true } }
  config.apps.http.http_port = other
  for (const server of Object.values(config.apps.http.servers) as { listen: string[] }[])
    server.listen = server.listen.map((address) => `127.0.0.1${address === ':80' ? `:${other}` : address}`)
  const caddy = spawn('caddy', ['run', '--config', '-'], { env, stdio: ['pipe', 'ignore', 'pipe'] })
  t.after(async () => {
    caddy.kill('SIGTERM')
    if (caddy.exitCode === null) await once(caddy, 'exit')
  })
  let log = ''
  caddy.stderr.on('data', (bytes) => (log += bytes))
  caddy.stdin.end(JSON.stringify(config))
  await until('caddy to serve', () => {
    assert.equal(caddy.exitCode, null, log)
    return log.includes('serving initial configuration')
  })
  return { base: `http://localhost:${site}`, port: other }
}

test('Caddy passes on the stream at once, waits with a waiting client, and forwards the client’s address', {
  skip: missing,
}, async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, {
    env: { POSTHORN_TRUSTED_PROXIES: '127.0.0.1/32', POSTHORN_DELIVERY: 'capture' },
  })
  const caller = await node.createCaller()
  const { host, port } = node.app.listening.http!
  const caddy = await startCaddy(t, place.folder, `${host}:${port}`)
  const api = new Api(() => caddy.base, caller.secret)
  const inbox = await api.createInbox()

  const stream = await openStream(t, caddy.base, caller.secret)
  const waiting = api.want<{ messages: object[] }>(`/v1/inboxes/${inbox.id}/messages?after=0&wait=20`)
  await send(api, inbox, [inbox.address])
  await until('the stream to tell of it', () => stream.events.some(({ type }) => type === 'message.received'))
  assert.equal((await waiting).messages.length > 0, true)
  stream.close()

  const bound = await node.createCaller({ key: { allowedIps: ['198.51.100.7'] } })
  const forged = { 'x-api-key': bound.secret, 'x-forwarded-for': '198.51.100.7' }
  const through = await fetch(`${caddy.base}/v1/me`, { headers: forged })
  assert.equal(through.status, 401, 'a client cannot say so itself')
  const direct = await fetch(`http://${host}:${port}/v1/me`, { headers: forged })
  assert.equal(direct.status, 200, 'what a trusted proxy says is believed')

  const challenge = await getExactly({ port: caddy.port, path: '/.well-known/acme-challenge/x' })
  assert.match(challenge.text, /"error"/)
  const plain = await fetch(`http://127.0.0.1:${caddy.port}/v1/me`, { redirect: 'manual' })
  assert.deepEqual([plain.status, plain.headers.get('location')], [308, 'https://127.0.0.1/v1/me'])
})

test('Caddy accepts the file unchanged', { skip: missing }, () => {
  const words = ['validate', '--adapter', 'caddyfile', '--config', file]
  const { status, stderr } = spawnSync('caddy', words, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.equal(
    spawnSync('caddy', ['fmt', file], { encoding: 'utf8' }).stdout,
    readFileSync(join(file), 'utf8'),
  )
})
