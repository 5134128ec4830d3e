// Gets certificates from a real ACME server: issued, served without a restart, renewed, revoked, and never lost.
import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { checkOrdered } from '../../src/cli/doctor/acme.ts'
import type { Role } from '../../src/config/settings.ts'
import { retryOrders, revokeStored } from '../../src/flow/certificates/revoke-certificate.ts'
import { findAcmeAccount } from '../../src/store/domains/certificates.ts'
import { listReceivingDomains } from '../../src/store/domains/domain-use.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { getExactly } from '../support/exact-get.ts'
import { freePort } from '../support/free-port.ts'
import { makePlace, type Place, startNode, type TestNode } from '../support/node.ts'
import { type Pebble, pebbleListenerCa, pebbleMissing, startPebble } from '../support/pebble.ts'
import { startPosthorn } from '../support/service.ts'
import { showsByHttps, showsBySmtp } from '../support/shown-certificate.ts'
import { until } from '../support/until.ts'

const skip = pebbleMissing
const mailHost = 'mx.posthorn.test'
const apiHost = 'api.posthorn.test'
const policyHost = 'mta-sts.inbox.test'
const here = { A: ['127.0.0.1'] }
const ownNames = { [mailHost]: here, [apiHost]: here, [policyHost]: here }

/** Makes this process trust Pebble's roots and listener for the length of a test. */
function trust(t: TestContext, ...pems: string[]): void {
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, ...pems])
  t.after(() => setDefaultCACertificates(before))
}

interface Stage {
  place: Place
  pebble: Pebble
  /** The DNS servers that this deployment and the authority query. */
  dns: { ours: DnsServer; theirs: DnsServer }
  env: Record<string, string>
}

async function setStage(t: TestContext): Promise<Stage> {
  trust(t, readFileSync(pebbleListenerCa, 'utf8'))
  const place = await makePlace(t)
  const dns = { ours: await DnsServer.start(ownNames), theirs: await DnsServer.start(ownNames) }
  for (const server of Object.values(dns)) place.after(() => server.close())
  const httpPort = await freePort()
  const pebble = await startPebble(place, { dns: dns.theirs.address, httpPort })
  const env = {
    POSTHORN_MAIL_HOST: mailHost,
    POSTHORN_PUBLIC_URL: `https://${apiHost}`,
    POSTHORN_DNS: dns.ours.address,
    POSTHORN_DELIVERY: 'capture',
    POSTHORN_HTTP: `127.0.0.1:${httpPort}`,
    POSTHORN_HTTPS: '127.0.0.1:0',
    POSTHORN_ACME: 'ops@posthorn.test',
    POSTHORN_ACME_DIRECTORY: pebble.directory,
  }
  return { place, pebble, dns, env }
}

/** Returns the certificate that both listeners serve. Throws if they differ. */
async function shown({
  app: { listening },
}: TestNode): Promise<{ serial: string; names: string[]; issuer: string }> {
  const bySmtp = await showsBySmtp(listening.smtp!.port)
  const byHttps = await showsByHttps(listening.https!.port, mailHost)
  assert.equal(byHttps.serialNumber, bySmtp.serialNumber)
  assert.equal((await showsByHttps(listening.https!.port)).serialNumber, bySmtp.serialNumber)
  const names = (byHttps.subjectaltname ?? '').split(', ').map((name) => name.replace('DNS:', ''))
  return { serial: byHttps.serialNumber, names: names.sort(), issuer: String(byHttps.issuer.CN) }
}

/** Waits until the node serves a new certificate from the authority. */
async function untilShown(node: TestNode, before = ''): Promise<Awaited<ReturnType<typeof shown>>> {
  return await until('another certificate of the authority', async () => {
    const now = await shown(node).catch(() => null) // it changed between the two reads
    return now && now.serial !== before && /^Pebble/.test(now.issuer) ? now : null
  }).catch((error) => {
    throw new Error(`${error.message}\n${node.log().split('\n').slice(-15).join('\n')}`)
  })
}

const account = async ({ foundation: { db } }: TestNode, { pebble }: Stage) =>
  (await findAcmeAccount(db, pebble.directory))!

test('a certificate is issued for the names that lead here, without a failing one, and shown without a restart', {
  skip,
}, async (t) => {
  const stage = await setStage(t)
  const { place, pebble, dns, env } = stage
  const node = await startNode(place, { env, roles: ['api', 'mx'] })
  assert.equal((await shown(node)).issuer, mailHost, 'self-signed at first')
  const { api } = await node.createCaller()
  await proveDomain(api, dns.ours, 'good.example', ['inbound'])
  await proveDomain(api, dns.ours, 'unknown.example', ['inbound'])
  await proveDomain(api, dns.ours, 'elsewhere.example', ['inbound'])
  await proveDomain(api, dns.ours, 'only-sends.example', ['outbound'])
  for (const name of ['good', 'unknown', 'only-sends']) dns.ours.set(`mta-sts.${name}.example`, here)
  dns.ours.set('mta-sts.elsewhere.example', { A: ['127.0.0.9'] })
  dns.theirs.set('mta-sts.good.example', here)

  // This node answers the challenge of another node's order. If two nodes would order, one does.
  const beganMs = performance.now()
  const ordering = { env: { ...env, POSTHORN_HTTP: '127.0.0.1:0' }, roles: ['jobs', 'mx'] as Role[] }
  const [other] = await Promise.all([startNode(place, ordering), startNode(place, ordering)])
  const first = await untilShown(node)
  t.diagnostic(`issued and shown by another node after ${Math.round(performance.now() - beganMs)} ms`)
  assert.deepEqual(first.names, [apiHost, 'mta-sts.good.example', policyHost, mailHost].sort())
  await until('every node to show it', async () => {
    const { serialNumber } = await showsBySmtp(other.smtp.port)
    return serialNumber === first.serial
  })
  assert.equal(pebble.newest(/There are now (\d+) accounts/), 1)
  const { refusals, failures } = await account(node, stage)
  assert.deepEqual([refusals.map(({ name }) => name), failures], [['mta-sts.unknown.example'], 0])
  assert.equal(await pebble.statusOf(first.serial), 'Valid')
  assert.equal(pebble.count(/Issued certificate serial/), 1)

  const check = await checkOrdered(node.foundation)
  assert.equal(check.status, 'warning')
  assert.match(check.detail, /without mta-sts\.unknown\.example: /)
  const [row] = await node.foundation.db.query('select count(*)::int as left from acme_challenge')
  assert.deepEqual(row, { left: 0 })
})

test('each organization’s first domain gets a name before any organization’s second', async (t) => {
  const dns = await DnsServer.start({})
  t.after(() => dns.close())
  const env = { POSTHORN_DELIVERY: 'capture', POSTHORN_DNS: dns.address }
  const node = await startNode(await makePlace(t), { env })
  const [many, one] = [(await node.createCaller()).api, (await node.createCaller()).api]
  for (const name of ['a1.example', 'a2.example', 'a3.example'])
    await proveDomain(many, dns, name, ['inbound'])
  await proveDomain(one, dns, 'b1.example', ['inbound'])
  const listed = await listReceivingDomains(node.foundation.db, 3)
  assert.deepEqual(listed, ['a1.example', 'b1.example', 'a2.example'])
})

test('a certificate is renewed at a third of its lifetime, and the policy is enforced once strangers accept it', {
  skip,
}, async (t) => {
  const stage = await setStage(t)
  const { place, pebble, env } = stage
  const node = await startNode(place, { env })
  const first = await untilShown(node)
  const { port } = node.app.listening.http!
  const policy = async () => {
    const { status, text } = await getExactly({ port, path: '/.well-known/mta-sts.txt', host: policyHost })
    return `${status} ${text}`
  }
  assert.equal(await policy(), `200 version: STSv1\r\nmode: testing\r\nmx: ${mailHost}\r\nmax_age: 86400\r\n`)
  assert.match((await checkOrdered(node.foundation)).detail, /its authority is not a public one/)

  trust(t, await pebble.root())
  const { clock } = node.foundation
  clock.advance(11_000)
  assert.equal(
    await policy(),
    `200 version: STSv1\r\nmode: enforce\r\nmx: ${mailHost}\r\nmax_age: 604800\r\n`,
  )
  assert.equal((await checkOrdered(node.foundation)).status, 'ok')

  const dayMs = 86_400_000
  clock.advance(61 * dayMs)
  const second = await untilShown(node, first.serial)
  assert.deepEqual(second.names, first.names)
  assert.equal(pebble.newest(/There are now (\d+) accounts/), 1)
  // The policy must not make senders insist on an expired certificate.
  clock.advance(31 * dayMs)
  assert.match(await policy(), /^200 version: STSv1\r\nmode: testing\r\n/)
})

test('a command revokes the certificate, and another one is ordered with another key', {
  skip,
}, async (t) => {
  const stage = await setStage(t)
  const { place, pebble, env } = stage
  const node = await startNode(place, { env })
  const first = await untilShown(node)
  const before = await account(node, stage)
  const revoked = await revokeStored(node.foundation, pebble.directory)
  assert.equal(revoked.chain, before.certificate!.chain)
  assert.equal(await pebble.statusOf(first.serial), 'Revoked')
  const second = await untilShown(node, first.serial)
  assert.deepEqual(second.names, first.names)
  assert.equal(await pebble.statusOf(second.serial), 'Valid')
  await node.stop()
  const again = await startNode(place, { env })
  assert.equal((await shown(again)).serial, second.serial, 'kept over a restart')
})

test('a failed order is retried ever more slowly, and at once on request', {
  skip,
}, async (t) => {
  const stage = await setStage(t)
  const { place, pebble, dns, env } = stage
  for (const name of Object.keys(ownNames)) dns.theirs.remove(name)
  const node = await startNode(place, { env })
  const failed = await until('a failed order', async () => {
    const found = await findAcmeAccount(node.foundation.db, pebble.directory)
    return found?.fault ? found : null
  })
  assert.equal(failed.failures, 1)
  assert.match(failed.fault!, /^\S+\.test: .*\(and 2 more\)/)
  const check = await checkOrdered(node.foundation)
  assert.deepEqual(
    [check.status, /none yet; the last order failed: \S+\.test: /.test(check.detail)],
    ['failed', true],
  )
  node.foundation.clock.advance(12_000)
  await until('the end of a second one', () => /"failures":2/.test(node.log()))
  for (const [name, records] of Object.entries(ownNames)) dns.theirs.set(name, records)
  node.foundation.clock.advance(12_000)
  assert.ok((await account(node, stage)).retryAt! > node.foundation.clock.now())
  await retryOrders(node.foundation, pebble.directory)
  await untilShown(node)
  assert.equal((await checkOrdered(node.foundation)).status, 'warning')
})

test('a start after a kill between account and certificate continues with the same account', {
  skip,
}, async (t) => {
  const dns = await DnsServer.start(ownNames)
  t.after(() => dns.close())
  const httpPort = await freePort()
  const pebble = await startPebble(t, { dns: dns.address, httpPort })
  const release = dns.hold()
  const posthorn = await startPosthorn(t, {
    env: {
      POSTHORN_MAIL_HOST: mailHost,
      POSTHORN_DELIVERY: 'capture',
      POSTHORN_DNS: '127.0.0.1:1',
      POSTHORN_ACME: 'ops@posthorn.test',
      POSTHORN_ACME_DIRECTORY: pebble.directory,
      POSTHORN_HTTP: `127.0.0.1:${httpPort}`,
      POSTHORN_HTTPS: '127.0.0.1:0',
      NODE_EXTRA_CA_CERTS: pebbleListenerCa,
    },
  })
  await until('the authority to ask for the challenge', () => dns.held > 0)
  await posthorn.kill9()
  release()
  assert.equal(pebble.newest(/There are now (\d+) accounts/), 1)
  const startedMs = performance.now()
  await posthorn.start()
  const issuer = async () => String((await showsBySmtp(posthorn.smtp.port)).issuer.CN)
  await until('the certificate', async () => /^Pebble/.test(await issuer()), {
    everyMs: 200,
    timeoutMs: 60_000,
  })
  t.diagnostic(`issued ${((performance.now() - startedMs) / 1000).toFixed(1)} s after the start`)
  assert.equal(pebble.newest(/There are now (\d+) accounts/), 1)
  const told = await posthorn.cli<{ certificate: { names: string[] }; failures: number }>([
    'certificate',
    'show',
  ])
  assert.deepEqual([told.certificate.names, told.failures], [[mailHost], 0])
  const { pem } = await posthorn.cli<{ pem: string }>(['certificate', 'export'])
  const exported = new X509Certificate(pem)
  assert.ok(exported.checkHost(mailHost) && exported.checkPrivateKey(createPrivateKey(pem)))
  const { revoked } = await posthorn.cli(['certificate', 'revoke'])
  assert.equal(revoked, exported.serialNumber)
  assert.equal(await pebble.statusOf(String(revoked)), 'Revoked')
})
