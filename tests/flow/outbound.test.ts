// F21: mail to other servers leaves from the address that is set for it, and the peer sees it. Local mail does not use it.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { checkNames, checkOutbound } from '../../src/cli/doctor/outbound.ts'
import { tryListening } from '../../src/config/listener.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { sourceFor } from '../../src/flow/delivering/outbound.ts'
import { DnsServer, type ZoneRecords } from '../support/dns-server.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'

const hasIpv6 = (await tryListening({ host: '::1', port: 0 })) === null

const place = await makePlace({ after })

/** Each test has a node of its own, because their settings differ. They share one database. */
async function start(t: TestContext, env: Record<string, string>): Promise<TestNode> {
  const node = await startNode(place, { env })
  t.after(() => node.stop())
  return node
}

/** Mail servers of `far.test`, one address each, and their DNS records. */
async function startFar(t: TestContext, records: Pick<ZoneRecords, 'A' | 'AAAA'>): Promise<DnsServer> {
  const dns = await DnsServer.start({ 'far.test': { MX: [[10, 'mx.far.test']] }, 'mx.far.test': records })
  t.after(() => dns.close())
  return dns
}

test('direct delivery: a domain’s mail server sees the address, and our own mail server does not', async (t) => {
  const sink = await startSink(t, { host: '127.0.0.10' })
  const dns = await startFar(t, { A: ['127.0.0.10'] })
  const node = await start(t, {
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_DNS: dns.address,
    POSTHORN_MX_PORT: String(sink.port),
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_OUTBOUND_IP: '127.0.0.2',
  })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const { submission } = await send(api, inbox, ['someone@far.test', inbox.address])
  await untilStates(api, submission.id, 'delivered', 'delivered')
  assert.deepEqual(sink.peers, ['127.0.0.2'])
  const received = node
    .log()
    .split('\n')
    .find((line) => line.includes('mail received'))!
  assert.equal(JSON.parse(received).peer, '127.0.0.1')
})

for (const [what, source, seen] of [
  ['a smarthost sees the address', '127.0.0.3', '127.0.0.3'],
  ['without an address of its family the system chooses', '::1', '127.0.0.1'],
  ['none chosen: the system chooses', '', '127.0.0.1'],
] as const)
  test(`through a smarthost: ${what}`, { skip: source === '::1' && !hasIpv6 }, async (t) => {
    const sink = await startSink(t, { host: '127.0.0.11' })
    const node = await start(t, {
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_OUTBOUND_IP: source,
    })
    const { api } = await node.createCaller()
    const { submission } = await send(api, await api.createInbox(), ['someone@far.test'])
    await untilStates(api, submission.id, 'delivered')
    assert.deepEqual(sink.peers, [seen])
  })

test('captured mail needs no bound address', async (t) => {
  const node = await start(t, { POSTHORN_DELIVERY: 'capture', POSTHORN_OUTBOUND_IP: '127.0.0.2' })
  const { api } = await node.createCaller()
  const { submission } = await send(api, await api.createInbox(), ['someone@far.test'])
  await untilStates(api, submission.id, 'delivered')
})

test('an address that this machine lacks stops the start of a delivering node only', async () => {
  const env = { POSTHORN_DELIVERY: 'direct', POSTHORN_OUTBOUND_IP: '192.0.2.77' }
  await assert.rejects(
    startNode(place, { env }),
    /^StartRefused: POSTHORN_OUTBOUND_IP: 192\.0\.2\.77 is not an address/,
  )
  await startNode(place, { env, roles: ['api', 'mx'] })
})

const both = { ipv4: '192.0.2.1', ipv6: '2001:db8::1' }
for (const [target, outbound, source] of [
  ['198.51.100.1', both, '192.0.2.1'],
  ['2001:db8::9', both, '2001:db8::1'],
  ['2001:db8::9', { ...both, ipv6: null }, undefined],
  ['198.51.100.1', { ...both, ipv4: null }, undefined],
  ['127.0.0.1', both, undefined],
  ['::1', both, undefined],
  ['127.0.0.1', { ipv4: '127.0.0.2', ipv6: null }, '127.0.0.2'],
] as const)
  test(`a connection to ${target} leaves by ${source ?? 'an address that the system chooses'}`, () => {
    assert.equal(sourceFor(outbound, target), source)
  })

const mailHost = 'mx.ours.test'
const reverse4 = '1.44.51.198.in-addr.arpa'
const none = { ipv4: null, ipv6: null }

/** The doctor's findings about names, as `status detail`, and the advice. */
async function namesOf(
  t: TestContext,
  zone: Record<string, ZoneRecords>,
  outbound: typeof both | typeof none,
) {
  const dns = await DnsServer.start(zone)
  t.after(() => dns.close())
  const resolver = new Resolver({ servers: [dns.address], timeoutMs: 500, tries: 1 })
  return { dns, checks: await checkNames({ outbound: outbound as never, mailHost }, resolver) }
}

const host = { [mailHost]: { A: ['198.51.44.1'] } }
const cases: [
  what: string,
  zone: Record<string, ZoneRecords>,
  outbound: object,
  ...found: [string, RegExp, RegExp][],
][] = [
  [
    'its own name',
    { ...host, [reverse4]: { PTR: [mailHost] } },
    none,
    ['ok', /^198\.51\.44\.1 is mx\.ours\.test/, /^$/],
  ],
  [
    'no name',
    host,
    none,
    [
      'failed',
      /^198\.51\.44\.1 has no name, so large receivers refuse its mail$/,
      /ask the provider of the address to set its PTR record to mx\.ours\.test$/,
    ],
  ],
  [
    'a name that has not the address',
    {
      ...host,
      [reverse4]: { PTR: ['host-1.provider.test'] },
      'host-1.provider.test': { A: ['198.51.44.2'] },
    },
    none,
    [
      'failed',
      /^no name of 198\.51\.44\.1 leads back to that address/,
      /publish: mx\.ours\.test A 198\.51\.44\.1$/,
    ],
  ],
  [
    'another name that has it',
    {
      ...host,
      [reverse4]: { PTR: ['host-1.provider.test'] },
      'host-1.provider.test': { A: ['198.51.44.1'] },
    },
    none,
    [
      'warning',
      /^198\.51\.44\.1 is host-1\.provider\.test, but its EHLO says mx\.ours\.test$/,
      /PTR record to/,
    ],
  ],
  [
    'behind a NAT the mail host’s address counts',
    { ...host, [reverse4]: { PTR: [mailHost] } },
    { ipv4: '10.0.0.5', ipv6: null },
    ['ok', /^198\.51\.44\.1 is/, /^$/],
  ],
  [
    'an address that the mail host lacks fails SPF',
    { ...host, '9.44.51.198.in-addr.arpa': { PTR: [mailHost] } },
    { ipv4: '198.51.44.9', ipv6: null },
    [
      'failed',
      /^mail leaves from 198\.51\.44\.9, which is not an address of mx\.ours\.test: SPF/,
      /^publish: mx\.ours\.test A 198\.51\.44\.9$/,
    ],
    ['failed', /^no name of 198\.51\.44\.9 leads back to that address/, /A 198\.51\.44\.9$/],
  ],
  [
    'each family has its own name',
    {
      [mailHost]: { A: ['198.51.44.1'], AAAA: ['2001:470::1'] },
      [reverse4]: { PTR: [mailHost] },
    },
    none,
    ['ok', /^198\.51\.44\.1 is/, /^$/],
    ['failed', /^2001:470::1 has no name/, /PTR/],
  ],
]

for (const [what, zone, outbound, ...found] of cases)
  test(`F22: the doctor checks the name of the address that mail leaves by: ${what}`, async (t) => {
    const { checks } = await namesOf(t, zone, outbound as typeof none)
    assert.equal(checks.length, found.length, JSON.stringify(checks))
    for (const [index, [status, detail, mend]] of found.entries()) {
      const check = checks[index]!
      assert.equal(check.status, status)
      assert.match(check.detail, detail)
      assert.match(check.mend ?? '', mend)
    }
  })

test('F22: a DNS failure is not reported as a wrong name', async (t) => {
  const dns = await DnsServer.start({ ...host, [reverse4]: { PTR: [mailHost] } })
  t.after(() => dns.close())
  dns.fail(reverse4, 'SERVFAIL')
  const resolver = new Resolver({ servers: [dns.address], timeoutMs: 500, tries: 1 })
  const [check] = await checkNames({ outbound: none, mailHost }, resolver)
  assert.deepEqual([check!.status, check!.detail], ['warning', 'DNS did not return the name of 198.51.44.1'])
})

test('F21: the doctor reports whether this machine has the address', async () => {
  const statuses = async (ipv4: string | null) =>
    (await checkOutbound({ outbound: { ipv4, ipv6: null }, mailHost })).map(
      ({ status, detail }) => `${status} ${detail}`,
    )
  assert.deepEqual(await statuses(null), [])
  assert.deepEqual(await statuses('127.0.0.2'), ['ok mail leaves from 127.0.0.2'])
  assert.deepEqual(await statuses('192.0.2.77'), [
    'failed 192.0.2.77 is not an address of this machine (EADDRNOTAVAIL)',
  ])
})
