// Several hosts take a destination's mail: an attempt skips hosts that do not answer.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import type { SubmissionId } from '../../src/base/ids.ts'
import { checkRelay } from '../../src/cli/doctor/relay.ts'
import { readSettings } from '../../src/config/settings.ts'
import { HopFinder } from '../../src/dns/mx.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { flushQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { attemptMs, type NextHopDeps, openRoute } from '../../src/flow/delivering/next-hop.ts'
import { type TlsRule, type TlsRules, withoutPolicy } from '../../src/flow/delivering/tls-rules.ts'
import type { StoredStep } from '../../src/store/sending/conversation.ts'
import { savePolicy } from '../../src/store/sending/mta-sts-policies.ts'
import { listQueues } from '../../src/store/sending/routes.ts'
import { listExchanges } from '../../src/store/sending/submission-life.ts'
import type { Submission } from '../support/api.ts'
import { registerDomain } from '../support/customer-domain.ts'
import { DnsServer, type ZoneRecords } from '../support/dns-server.ts'
import { freePort } from '../support/free-port.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const loopback = (n: number) => `127.0.0.${10 + n}`
// No process listens here, whether or not this machine has IPv6.
const nowhere = '::1'

function depsFor(dns: DnsServer, mxPort: number): NextHopDeps {
  const resolver = new Resolver({ servers: [dns.address] })
  return {
    hopFinder: new HopFinder({ resolver, isAllowed: () => true }),
    resolver,
    mode: 'direct',
    relay: null,
    mxPort,
    outbound: { ipv4: null, ipv6: null },
    ehloName: 'me.test',
    ownEhloName: () => 'me.test',
    listAddresses: async () => [],
  }
}

type Host = Pick<ZoneRecords, 'A' | 'AAAA'>

/** The zone of a domain with these mail servers, tried in this order. Each is one address or several. */
function zoneOf(domain: string, hosts: Host[]): Record<string, ZoneRecords> {
  return {
    [domain]: { MX: hosts.map((_, index) => [10 * (index + 1), `mx${index}.${domain}`]) },
    ...Object.fromEntries(hosts.map((host, index) => [`mx${index}.${domain}`, host])),
  }
}

const asking = (asked: readonly string[] = []) => ({ asker: '', signal: new AbortController().signal, asked })

async function startDns(t: TestContext, hosts: Host[]): Promise<DnsServer> {
  const dns = await DnsServer.start(zoneOf('far.test', hosts))
  t.after(() => dns.close())
  return dns
}

const place = await makePlace({ after })
const mxPort = await freePort()
const own = '127.0.0.41'
const [backupHost, betterHost] = ['127.0.0.42', '127.0.0.43']
const sharedDns = await DnsServer.start({
  'moving.test': {
    MX: [
      [10, 'mx.moving.test'],
      [20, 'backup.test'],
    ],
  },
  'mx.moving.test': { A: [own] },
  'named.test': {
    MX: [
      [20, 'backup.test'],
      [10, 'mx.dep.test'],
      [10, 'backup.test'],
    ],
  },
  'mx.dep.test': { A: ['127.0.0.44'] },
  'far.test': {
    MX: [
      [10, 'better.test'],
      [20, 'mx.dep.test'],
      [30, 'backup.test'],
    ],
  },
  'better.test': { A: [betterHost] },
  'null.test': { MX: [[0, '.']] },
  'backup.test': { A: [backupHost] },
})
place.after(() => sharedDns.close())
const node = await startNode(place, {
  env: {
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_DNS: sharedDns.address,
    POSTHORN_MX_PORT: String(mxPort),
    POSTHORN_MAIL_HOST: 'mx.dep.test',
    POSTHORN_SMTP: `${own}:${mxPort}`,
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  },
})

test('check 34: hosts that refuse, hang up or lack IPv6 are skipped within one attempt', async (t) => {
  const taking = await startSink(t, { host: loopback(0), port: mxPort })
  const rules: Rule[] = [
    ({ stage }) => (stage === 'banner' ? '554 5.3.2 closed' : null),
    ({ stage }) => (stage === 'banner' ? 'cut' : null),
    ({ stage }) => (stage === 'hello' ? '421 4.3.2 busy' : null),
  ]
  const refusing = await Promise.all(
    rules.map((rule, index) => startSink(t, { host: loopback(index + 1), port: mxPort, rule })),
  )
  const zone = zoneOf('passing.test', [
    { AAAA: [nowhere] },
    ...refusing.map(({ host }) => ({ A: [host] })),
    { A: [taking.host], AAAA: [nowhere] },
  ])
  for (const [name, records] of Object.entries(zone)) sharedDns.set(name, records)
  const { api } = await node.createCaller()
  const { submission } = await send(api, await api.createInbox(), ['someone@passing.test'])
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
      ['attempted', 1, 'mx4.passing.test'],
      ['delivered', 1, 'mx4.passing.test'],
    ],
  )
  const [{ conversation } = { conversation: [] }] = await node.foundation.db.query<{
    conversation: StoredStep[]
  }>(`select conversation from event where submission_id = $1 and type = 'delivered'`, [submission.id])
  assert.deepEqual(
    conversation
      .filter(([command]) => command === 'connect')
      .map(([, , code, , text]) => [code, text.split(' ')[0]]),
    [0, 554, 0, 421, 220].map((code, n) => [code, n < 4 ? `mx${n}.passing.test` : 'sink.test']),
  )
})

test('check 34: silent hosts are skipped within one attempt, in order', async (t) => {
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
  const deps = { ...depsFor(dns, port), timeouts: { bannerMs: 2_000, ehloMs: 2_000 } }
  const opened = await openRoute(deps, 'far.test', asking())
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

test('hostile 1: one deadline covers all hosts of a destination, each has a share, and it ends the step in progress', async (t) => {
  const first = await startSink(t, { host: loopback(0) })
  const { port } = first
  const others = await Promise.all([1, 2].map((n) => startSink(t, { host: loopback(n), port })))
  const hosts = [first, ...others]
  // The first server refuses late, and the others are silent: each would have the deadline's time again.
  first.rule = () => new Promise((done) => setTimeout(done, 300, '554 5.3.2 closed'))
  for (const sink of others) sink.rule = () => new Promise(() => {})
  const dns = await startDns(
    t,
    hosts.map(({ host }) => ({ A: [host] })),
  )
  const startMs = performance.now()
  const deps = { ...depsFor(dns, port), timeouts: { bannerMs: 60_000 }, deadlineMs: 3_000 }
  const opened = await openRoute(deps, 'far.test', asking())
  assert.ok('fault' in opened, JSON.stringify(opened))
  assert.match(opened.fault.text, /^mx0[^;]*554[^;]*; mx1[^;]* in time; mx2[^;]* in time$/)
  // Without the deadline, the wait for a banner alone would take 60 s.
  assert.ok(performance.now() - startMs < 30_000)
  assert.deepEqual(
    hosts.map(({ connections }) => connections),
    [1, 1, 1],
  )
  await until('no connection to be left', () => hosts.every(({ open }) => open === 0))
})

test('hostile 1: one attempt tries at most five addresses of a destination', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'banner' ? '554 5.3.2 closed' : null)
  const first = await startSink(t, { host: loopback(0), rule })
  const { port } = first
  const others = [1, 2, 3, 4, 5, 6].map((n) => startSink(t, { host: loopback(n), port, rule }))
  const hosts = [first, ...(await Promise.all(others))]
  const dns = await startDns(t, [{ A: hosts.map(({ host }) => host) }])
  const opened = await openRoute(depsFor(dns, port), 'far.test', asking())
  assert.ok('fault' in opened, JSON.stringify(opened))
  const asked = () => hosts.filter(({ connections }) => connections === 1).map(({ host }) => host)
  assert.equal(asked().length, 5)
  for (const host of asked()) assert.match(opened.fault.text, new RegExp(`\\[${host}\\]: [^;]*554`))
  // The next attempt asks the others, and the one after it begins a new round.
  const next = await openRoute(depsFor(dns, port), 'far.test', asking(opened.fault.asked))
  assert.equal(asked().length, 7)
  assert.deepEqual('fault' in next && [next.fault.asked, next.fault.hasUnasked], [[], false])
})

test('check 33: each of 100 mail servers is asked once, an attempt ends in time, and one that answers is found', async (t) => {
  const addresses = Array.from({ length: 100 }, (_, n) => `127.0.${1 + Math.floor(n / 50)}.${1 + (n % 50)}`)
  const [first, ...others] = addresses
  const one = await startSink(t, { host: first! })
  const { port } = one
  const hosts = [one, ...(await Promise.all(others.map((host) => startSink(t, { host, port }))))]
  for (const [n, host] of hosts.entries())
    host.rule = ({ stage }) => {
      if (stage !== 'banner' || n >= 97) return null
      return n < 5 ? new Promise(() => {}) : '554 5.3.2 closed'
    }
  const dns = await startDns(
    t,
    addresses.map((address) => ({ A: [address] })),
  )
  const deadlineMs = 2_000
  const deps = { ...depsFor(dns, port), deadlineMs }
  let asked: readonly string[] = []
  let opened: Awaited<ReturnType<typeof openRoute>>
  const faults: string[] = []
  for (;;) {
    const startedMs = performance.now()
    opened = await openRoute(deps, 'far.test', asking(asked))
    assert.ok(performance.now() - startedMs < deadlineMs + 1_000)
    if (!('fault' in opened)) break
    assert.equal(opened.fault.hasUnasked, true)
    faults.push(opened.fault.text)
    asked = opened.fault.asked
  }
  assert.ok('connection' in opened)
  opened.connection.destroy()
  assert.equal(opened.connection.remote.ip, addresses[97])
  assert.equal(faults.length, 19)
  for (const address of addresses.slice(0, 5)) assert.ok(faults[0]!.includes(`[${address}]: not ready`))
  assert.deepEqual(new Set(hosts.slice(0, 97).map(({ connections }) => connections)), new Set([1]))
  assert.equal(attemptMs, 60_000)
})

test('check 35: a host whose TLSA records are unknown or unmet gets no mail, and the next host is tried', async (t) => {
  const first = await startSink(t, { host: loopback(0) })
  const { port } = first
  const others = await Promise.all([1, 2].map((n) => startSink(t, { host: loopback(n), port })))
  const hosts = [first, ...others]
  const dns = await startDns(
    t,
    hosts.map(({ host }) => ({ A: [host] })),
  )
  dns.signed.add('far.test')
  dns.fail(`_${port}._tcp.mx0.far.test`, 'SERVFAIL')
  dns.set(`_${port}._tcp.mx1.far.test`, {
    TLSA: [{ usage: 0, selector: 0, matchingType: 1, association: '' }],
  })
  const open = () => openRoute(depsFor(dns, port), 'far.test', asking())
  const opened = await open()
  assert.ok('connection' in opened, JSON.stringify(opened))
  t.after(() => opened.connection.destroy())
  assert.equal(opened.connection.remote.host, 'mx2.far.test')
  assert.deepEqual(
    hosts.map(({ connections }) => connections),
    [0, 1, 1],
  )
  dns.fail(`_${port}._tcp.mx2.far.test`, 'SERVFAIL')
  dns.fail(`_${port}._tcp.mx1.far.test`, 'SERVFAIL')
  const refused = await open()
  assert.ok('fault' in refused)
  assert.equal(refused.fault.classification, 'tls')
  assert.match(
    refused.fault.text,
    /mx2\.far\.test \[[\d.]+\]: DANE: its TLSA records cannot be looked up: DNS answered SERVFAIL$/,
  )
})

test('check 35: an enforced policy verifies a server whose TLSA records are unusable', async (t) => {
  const sink = await startSink(t, { host: loopback(0) })
  const dns = await startDns(t, [{ A: [sink.host] }])
  dns.signed.add('far.test')
  dns.set(`_${sink.port}._tcp.mx0.far.test`, {
    TLSA: [{ usage: 0, selector: 0, matchingType: 1, association: '' }],
  })
  const refusal = async (decision: TlsRule['decision']) => {
    const ruleOf = async () => ({ ...withoutPolicy('far.test'), decision })
    const deps = { ...depsFor(dns, sink.port), tlsRules: { ruleOf } }
    const opened = await openRoute(deps, 'far.test', asking())
    return 'fault' in opened && opened.fault.text
  }
  // The server does not start TLS, so each rule refuses it in its own words.
  for (const [requirement, words] of [
    [{ kind: 'opportunistic' }, /: DANE, by/],
    [{ kind: 'mta-sts', mode: 'testing', isListed: true }, /: DANE, by/],
    [{ kind: 'mta-sts', mode: 'enforce', isListed: true }, /: MTA-STS policy \(enforce\)/],
    [{ refusal: 'not listed' }, /: not listed$/],
  ] as const)
    assert.match(String(await refusal(requirement)), words)
})

test('check 36: a slow policy host does not use up the share of the first of five addresses', async (t) => {
  const sink = await startSink(t, { host: loopback(0) })
  const others = [1, 2, 3, 4].map((n) => ({ A: [loopback(n)] }))
  const dns = await startDns(t, [{ A: [sink.host] }, ...others])
  const ruleOf: TlsRules['ruleOf'] = async (domain, _host, { signal }) => {
    // The share of an address is 1.6 s.
    await delay(1_700)
    const rule = withoutPolicy(domain)
    return signal.aborted ? { ...rule, decision: { refusal: 'interrupted' } } : rule
  }
  const deps = { ...depsFor(dns, sink.port), tlsRules: { ruleOf }, deadlineMs: 8_000 }
  const opened = await openRoute(deps, 'far.test', asking())
  assert.ok('connection' in opened, JSON.stringify(opened))
  opened.connection.destroy()
  assert.equal(opened.connection.remote.ip, sink.host)
})

test('check 36: a look-up of a policy that the deadline ends is no fault of TLS, and no mail goes without it', async (t) => {
  const sink = await startSink(t, { host: loopback(0) })
  const dns = await startDns(t, [{ A: [sink.host] }])
  const ruleOf: TlsRules['ruleOf'] = async (domain, _host, { signal }) => {
    await once(signal, 'abort')
    return { ...withoutPolicy(domain), decision: { refusal: 'interrupted' } }
  }
  const deps = { ...depsFor(dns, sink.port), tlsRules: { ruleOf }, deadlineMs: 1_000 }
  const opened = await openRoute(deps, 'far.test', asking())
  assert.ok('fault' in opened)
  assert.notEqual(opened.fault.classification, 'tls')
  assert.equal(sink.connections, 0)
})

test('check 33: mail whose MX is this service is a loop, and waits only for a domain that is registered here', async (t) => {
  const [backup, better] = await Promise.all([
    startSink(t, { host: backupHost, port: mxPort }),
    startSink(t, { host: betterHost, port: mxPort }),
  ])
  const { api } = await node.createCaller()
  await registerDomain(api, 'moving.test')
  const to = ['a@moving.test', 'b@named.test', 'c@far.test']
  const { submission } = await send(api, await api.createInbox(), to)
  const seen = await until('the two to meet the loop', async () => {
    const shown = await api.want<Submission>(`/v1/submissions/${submission.id}`)
    const [moving, named, far] = shown.recipients
    return moving!.response && named!.response && far!.status === 'delivered' ? shown : null
  })
  const [moving, named] = seen.recipients
  assert.deepEqual([moving!.status, named!.status], ['pending', 'failed'])
  assert.match(moving!.response!, /mail loop/)
  // RFC 5321 5.1: without a better server the mail is undeliverable, although the list has a backup.
  assert.match(named!.response!, /^5\.4\.6 .*mail loop/)
  assert.deepEqual([backup.connections, better.connections], [0, 1])
  // Once the domain is ours, or has another mail server, the mail goes on.
  sharedDns.set('moving.test', { MX: [[20, 'backup.test']] })
  await flushQueue(node.foundation, 'moving.test')
  await untilStates(api, submission.id, 'delivered', 'failed', 'delivered')

  await t.test('each recipient and its final event say why the mail did not arrive', async () => {
    const failing = await send(api, await api.createInbox(), ['a@nosuch.test', 'b@null.test', 'c@far.test'])
    const { id } = failing.submission
    const ended = await untilStates(api, id, 'failed', 'failed', 'delivered')
    const codes = [
      ['a@nosuch.test', 'domain_not_found'],
      ['b@null.test', 'null_mx'],
      ['c@far.test', null],
    ]
    assert.deepEqual(
      ended.recipients.map(({ email, failureCode }) => [email, failureCode]),
      codes,
    )
    const { events } = await api.want<{ events: EndEvent[] }>(`/v1/submissions/${id}/events`)
    const ends = events.filter(({ type }) => type === 'failed' || type === 'delivered')
    const statuses = new Map(ends.map(({ recipient, enhancedStatus }) => [recipient, enhancedStatus]))
    assert.deepEqual([statuses.get('a@nosuch.test'), statuses.get('b@null.test')], ['5.1.2', '5.1.10'])
    assert.deepEqual(ends.map(({ recipient, failureCode }) => [recipient, failureCode]).sort(), codes)
    assert.ok(events.every(({ type, failureCode }) => type === 'failed' || failureCode === null))
  })
})

test('check 33, 38: mail is given up only after each of twelve mail servers was asked, five in an attempt', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'banner' ? '421 4.3.2 busy' : null)
  const hosts = await Promise.all(
    Array.from({ length: 12 }, (_, n) => startSink(t, { host: loopback(50 + n), port: mxPort, rule })),
  )
  const zone = zoneOf(
    'busy.test',
    hosts.map(({ host }) => ({ A: [host] })),
  )
  for (const [name, records] of Object.entries(zone)) sharedDns.set(name, records)
  const { db, clock } = node.foundation
  const { api } = await node.createCaller()
  const startedMs = clock.nowMs()
  const { submission } = await send(api, await api.createInbox(), ['someone@busy.test'])
  for (const asked of [5, 10, 12]) {
    const { notBefore } = await until(`${asked} servers to be asked, and the queue to wait`, async () => {
      const [queue] = await listQueues(db, 'busy.test')
      const count = hosts.filter(({ connections }) => connections === 1).length
      return count === asked && queue?.owner === null && queue.notBefore! > clock.now() ? queue : null
    })
    const { recipients } = await api.want<Submission>(`/v1/submissions/${submission.id}`)
    assert.equal(recipients[0]!.status, 'pending')
    const newest = hosts.slice(Math.max(0, asked - 5), asked).slice(asked === 12 ? -2 : -5)
    for (const { host } of newest) assert.ok(recipients[0]!.response!.includes(`[${host}]`))
    if (asked < 12) clock.advance(notBefore!.getTime() - clock.nowMs())
  }
  assert.ok(clock.nowMs() - startedMs < 5 * 60_000)
  clock.advance(73 * 3_600_000)
  const ended = await untilStates(api, submission.id, 'failed')
  assert.equal(ended.recipients[0]!.failureCode, 'soft_bounce_expired')
})

interface EndEvent {
  type: string
  recipient: string | null
  failureCode: string | null
  enhancedStatus: string | null
}

const far = { user: 'posthorn', password: 's3cret-relay' }

/** A smarthost with an untrusted certificate. */
async function startSmarthost(t: TestContext) {
  const seen = { passwords: [] as string[], mails: 0, handshakes: 0 }
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    onAuth: ({ username, password }, _session, done) => {
      seen.passwords.push(password!)
      if (password === far.password) done(null, { user: username })
      else done(new Error('no'))
    },
    onSecure: (_socket, _session, done) => {
      seen.handshakes++
      done()
    },
    onData: (stream, _session, done) => {
      stream.resume().on('end', () => {
        seen.mails++
        done()
      })
    },
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  t.after(() => new Promise<void>((resolve) => server.close(resolve)))
  return { seen, port: (server.server.address() as AddressInfo).port }
}

function relayUrl(host: string, port: number, password = far.password): string {
  return `smtp://${far.user}:${password}@${host}:${port}`
}

test('hostile 7: the smarthost’s password is sent only after its certificate was verified', async (t) => {
  const { seen, port } = await startSmarthost(t)
  // The loopback address in another form, which is no literal loopback address.
  const url = relayUrl('[::ffff:127.0.0.1]', port)
  const place = await makePlace(t)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: url }
  const node = await startNode(place, { env })
  const caller = await node.createCaller()
  const { submission } = await send(caller.api, await caller.api.createInbox(), ['someone@far.test'])
  const waits = await until('the certificate to be refused', async () => {
    const { events } = await caller.api.want<{ events: { classification: string; response: string }[] }>(
      `/v1/submissions/${submission.id}/events`,
    )
    return events[1]
  })
  assert.equal(waits.classification, 'tls')
  assert.match(waits.response, /self-signed|certificate/i)
  assert.ok(!waits.response.includes(far.user))
  assert.deepEqual(seen.passwords, [])
  await node.stop()
  // With this setting the mail is sent all the same, but never without TLS.
  const trusting = await startNode(place, { env: { ...env, POSTHORN_RELAY_TLS: 'unverified' } })
  await flushQueue(trusting.foundation, '@relay')
  await untilStates(trusting.meet(caller), submission.id, 'delivered')
  assert.deepEqual([seen.passwords, seen.mails, seen.handshakes > 0], [[far.password], 1, true])
})

test('hostile 7: the doctor tests the smarthost as delivery uses it', async (t) => {
  const { port } = await startSmarthost(t)
  const refusing = await startSink(t, {
    rule: ({ stage }) => (stage === 'banner' ? '554 5.3.2 go away' : null),
  })
  for (const [url, tls, status, words] of [
    [relayUrl('127.0.0.1', port), '', 'ok', /TLSv1\.3, certificate not verified, password accepted$/],
    [relayUrl('127.0.0.1', port), 'verified', 'failed', /certificate/],
    [relayUrl('127.0.0.1', port, 'wrong'), '', 'failed', /AUTH was answered by 535/],
    [refusing.url, '', 'failed', /554 5\.3\.2 go away/],
  ] as const) {
    const check = await checkRelay(readSettings({ POSTHORN_RELAY_URL: url, POSTHORN_RELAY_TLS: tls }))
    assert.deepEqual([check.status, check.mend === null], [status, status === 'ok'], check.detail)
    assert.match(check.detail, words)
    assert.equal(/POSTHORN_RELAY_TLS=unverified/.test(check.mend ?? ''), tls === 'verified')
    assert.ok(!`${check.detail}${check.mend}`.includes(far.password))
  }
})

test('a node of ours that accepts connections and never greets is skipped within seconds', async (t) => {
  const taking = await startSink(t, { host: loopback(0) })
  const hung = await startSink(t, { host: loopback(1), rule: () => new Promise<null>(() => {}) })
  const dns = await startDns(t, [])
  const addresses = [hung, taking].map(({ host, port }) => `${host}:${port}`)
  const deps = { ...depsFor(dns, 25), listAddresses: async () => addresses }
  const startedMs = performance.now()
  const opened = await openRoute(deps, '@local', asking())
  assert.ok('connection' in opened, JSON.stringify(opened))
  t.after(() => opened.connection.destroy())
  assert.equal(opened.connection.remote.ip, taking.host)
  assert.ok(performance.now() - startedMs < 10_000)
})

test('check 36: the timeline shows the TLS policy, and mail that no server may take ends as tls_required', async (t) => {
  const { db, clock } = node.foundation
  const sinks = await Promise.all(
    ['testing', 'enforce'].map(async (mode, index) => {
      const [domain, host] = [`${mode}.test`, loopback(7 + index)]
      sharedDns.set(domain, { A: [host] })
      const refreshAt = new Date(clock.nowMs() + 31_000_000_000)
      const policy = { id: '1', mode, mx: [domain], maxAgeSeconds: 31_000_000, refreshAt }
      await savePolicy(db.writer, domain, policy, { at: clock.now(), usedAt: null })
      return await startSink(t, { host, port: mxPort })
    }),
  )
  const { api } = await node.createCaller()
  const { submission } = await send(api, await api.createInbox(), ['a@testing.test', 'b@enforce.test'])
  const why = await until('the policy to be violated', async () => {
    const { recipients } = await api.want<Submission>(`/v1/submissions/${submission.id}`)
    return recipients[0]!.status === 'delivered' ? recipients[1]!.response : null
  })
  assert.match(why, /^enforce\.test \[.*\]: MTA-STS policy \(enforce\): the server does not start TLS$/)
  const [exchange] = await listExchanges(db, submission.id as SubmissionId, 10)
  assert.equal(exchange!.tlsPolicy, 'mta-sts testing')
  assert.equal(exchange!.tlsViolation, 'MTA-STS policy (testing): the server does not start TLS')
  type Events = { events: { recipient: string | null; type: string; classification: string | null }[] }
  const events = async () => {
    const found = await api.want<Events>(`/v1/submissions/${submission.id}/events`)
    return found.events.filter(({ recipient }) => recipient === 'b@enforce.test')
  }
  assert.ok(
    (await events()).some(({ type, classification }) => type === 'deferred' && classification === 'tls'),
  )
  clock.advance(node.foundation.settings.retryLifetimeMs + 1)
  const ended = await untilStates(api, submission.id, 'delivered', 'failed')
  assert.deepEqual([ended.recipients[1]!.failureCode, ended.recipients[1]!.response], ['tls_required', why])
  assert.deepEqual(
    sinks.map(({ copies }) => copies.length),
    [1, 0],
  )
})
