// Several hosts take a destination's mail: who does not answer is passed over within the attempt.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { HopFinder } from '../../src/dns/mx.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { openRoute } from '../../src/flow/next-hop.ts'
import { DnsServer, type ZoneRecords } from '../support/dns-server.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'

const loopback = (n: number) => `127.0.0.${10 + n}`
// Here nobody listens, whether or not this machine has IPv6.
const nowhere = '::1'

/** `far.test` with the mail servers given, tried in this order; each is an address, or several. */
async function startDns(t: TestContext, hosts: Pick<ZoneRecords, 'A' | 'AAAA'>[]): Promise<DnsServer> {
  const dns = await DnsServer.start({
    'far.test': { MX: hosts.map((_, index) => [10 * (index + 1), `mx${index}.far.test`]) },
    ...Object.fromEntries(hosts.map((host, index) => [`mx${index}.far.test`, host])),
  })
  t.after(() => dns.close())
  return dns
}

test('check 34: hosts that refuse, hang up or are out of reach by IPv6 are passed over within one attempt', async (t) => {
  const taking = await startSink(t, { host: loopback(0) })
  const { port } = taking
  const rules: Rule[] = [
    ({ stage }) => (stage === 'banner' ? '554 5.3.2 closed' : null),
    ({ stage }) => (stage === 'banner' ? 'cut' : null),
    ({ stage }) => (stage === 'hello' ? '421 4.3.2 busy' : null),
  ]
  const refusing = await Promise.all(
    rules.map((rule, index) => startSink(t, { host: loopback(index + 1), port, rule })),
  )
  const dns = await startDns(t, [
    { AAAA: [nowhere] },
    { A: [loopback(9)], AAAA: [nowhere] },
    ...refusing.map(({ host }) => ({ A: [host], AAAA: [nowhere] })),
    { A: [taking.host], AAAA: [nowhere] },
  ])
  const node = await startNode(await makePlace(t), {
    env: {
      ...{ POSTHORN_DELIVERY: 'direct', POSTHORN_DNS: dns.address, POSTHORN_MX_PORT: String(port) },
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await node.createCaller()
  const { submission } = await send(api, await api.createInbox(), ['someone@far.test'])
  await untilStates(api, submission.id, 'delivered')
  assert.deepEqual(
    [...refusing, taking].map(({ connections }) => connections),
    [1, 1, 1, 1],
  )
  type Events = { events: { type: string; attempt: number | null; remote: { host: string } | null }[] }
  const { events } = await api.want<Events>(`/v1/submissions/${submission.id}/events`)
  assert.deepEqual(
    events.map(({ type, attempt, remote }) => [type, attempt, remote?.host]),
    [
      ['accepted', null, undefined],
      ['queued', null, undefined],
      ['attempted', 1, 'mx5.far.test'],
      ['delivered', 1, 'mx5.far.test'],
    ],
  )
})

test('check 34: hosts that are silent are passed over within one attempt, in their order', async (t) => {
  const taking = await startSink(t, { host: loopback(0) })
  const { port } = taking
  const seen: string[] = []
  const silentAt = (wanted: string, host: string): Rule => {
    return ({ stage }) => {
      if (stage === 'banner') seen.push(host)
      return stage === wanted ? new Promise<null>(() => {}) : null
    }
  }
  const silent = await Promise.all(
    ['banner', 'hello'].map((stage, index) => {
      const host = loopback(index + 1)
      return startSink(t, { host, port, rule: silentAt(stage, host) })
    }),
  )
  const dns = await startDns(
    t,
    [...silent, taking].map(({ host }) => ({ A: [host] })),
  )
  const resolver = new Resolver({ servers: [dns.address] })
  const deps = {
    hopFinder: new HopFinder({ resolver, isAllowed: () => true }),
    ...{ mode: 'direct' as const, relay: null, mxPort: port, ehloName: 'me.test' },
    ...{ timeouts: { bannerMs: 2_000, ehloMs: 2_000 }, listAddresses: async () => [] },
  }
  const opened = await openRoute(deps, 'far.test', new AbortController().signal)
  assert.ok('connection' in opened, JSON.stringify(opened))
  t.after(() => opened.connection.destroy())
  assert.deepEqual(
    [opened.connection.remote.host, opened.connection.remote.ip],
    ['mx2.far.test', taking.host],
  )
  assert.deepEqual(
    seen,
    silent.map(({ host }) => host),
  )
})
