// MTA-STS for outgoing mail: real mail servers with certificates of every kind, a policy host over HTTPS, no downgrade.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import { pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { MtaSts, type MtaStsDeps, refreshPolicies } from '../../src/flow/delivering/mta-sts.ts'
import { openRoute } from '../../src/flow/delivering/next-hop.ts'
import { builtInRules } from '../../src/flow/delivering/shaping-rules.ts'
import { type TraceDeps, traceDelivery } from '../../src/flow/delivering/trace-delivery.ts'
import { ProvedDomains } from '../../src/flow/proved-domains.ts'
import { purgeStale } from '../../src/flow/upkeep/purge-stale.ts'
import { Db } from '../../src/postgres/db.ts'
import { insertSuppression } from '../../src/store/sending/suppressions.ts'
import { testDatabase } from '../support/postgres.ts'
import { type Far, type FarOptions, openStsStage, policyOf, type Served } from '../support/sts-stage.ts'
import { inReverse } from '../support/until.ts'

const scope = inReverse({ after })
const stage = await openStsStage(scope)
const { dns, mxPort, fetches, down, publish, startFar } = stage
const db = new Db({ connection: await testDatabase(scope), maxConnections: 2 })
scope.after(() => db.close())
const clock = new Clock()
const deps: MtaStsDeps = { db, clock, log: silentLog, resolver: stage.resolver, fetcher: stage.fetcher }

/** Sends a mail to the domain. Returns its policy and violation as events have them; or the fault. */
async function mail({ domain }: Far, tlsRules = new MtaSts(deps)) {
  const opened = await openRoute(stage.nextHopWith(tlsRules), domain, {
    asker: '',
    asked: [],
    signal: new AbortController().signal,
  })
  if (!('connection' in opened)) return opened
  const { connection } = opened
  const envelope = { from: 'me@me.test', to: `you@${domain}`, needsUtf8: false }
  const { recipients } = await connection.send([envelope], Buffer.from('Subject: hi\r\n\r\nhi\r\n'))
  await connection.quit()
  assert.equal(recipients[0]!.outcome, 'delivered')
  const { policy, violation, host } = connection.remote
  return { policy, violation, host }
}

async function assertDeferred(far: Far, why: RegExp, rules?: MtaSts): Promise<void> {
  const result = await mail(far, rules)
  assert.ok('fault' in result, JSON.stringify(result))
  assert.equal(result.fault.classification, 'tls')
  assert.match(result.fault.text, why)
  assert.deepEqual(far.mails, [])
}

test('check 36: an enforced policy lets mail go over TLS with a valid certificate', async (t) => {
  const far = await startFar(t, {})
  const wildcard = await startFar(t)
  publish(wildcard, '2', { text: policyOf('enforce', `*.${wildcard.domain}`) })
  for (const one of [far, wildcard]) {
    assert.deepEqual(await mail(one), { policy: 'mta-sts enforce', violation: undefined, host: one.host })
    assert.deepEqual(
      one.mails.map(({ isEncrypted }) => isEncrypted),
      [true],
    )
  }
})

const refused: [name: string, options: FarOptions, why: RegExp][] = [
  ['has a certificate for another name', { named: 'other.test' }, /not for mx\.sts\d+\.test$/],
  ['has an expired certificate', { toDays: -1 }, /has expired$/],
  ['has a self-signed certificate', { isSelfSigned: true }, /is self-signed$/],
  ['offers no STARTTLS', { isPlain: true }, /does not start TLS$/],
]

for (const [name, options, why] of refused) {
  test(`check 36: an enforced policy defers mail to a server that ${name}, and testing delivers it`, async (t) => {
    await assertDeferred(await startFar(t, options), why)
    const tested = await startFar(t, { ...options, mode: 'testing' })
    const { policy, violation } = (await mail(tested)) as { policy: string; violation: string }
    assert.equal(policy, 'mta-sts testing')
    assert.match(violation, why)
    assert.deepEqual(
      tested.mails.map(({ isEncrypted }) => isEncrypted),
      [!options.isPlain],
    )
  })
}

test('check 36: a server that an enforced policy does not name is skipped without a connection', async (t) => {
  const far = await startFar(t, { mx: '*.other.test' })
  await assertDeferred(far, /does not name this mail server$/)
  assert.equal(far.connections, 0)
  const backup = await startFar(t)
  dns.set(backup.domain, {
    MX: [
      [10, far.host],
      [20, backup.host],
    ],
  })
  assert.deepEqual(await mail(backup), { policy: 'mta-sts enforce', violation: undefined, host: backup.host })
  assert.equal(far.connections, 0)
})

test('check 36: the mode none is as if there were no policy', async (t) => {
  const far = await startFar(t, { mode: 'none', isPlain: true })
  assert.equal(((await mail(far)) as { policy: string }).policy, 'opportunistic')
})

const unfetched: [name: string, policy: Partial<Served>, why: RegExp][] = [
  ['a redirect', { status: 302, headers: { location: '/x' } }, /^the policy host answered 302$/],
  ['another media type', { headers: { 'content-type': 'text/html' } }, /not text\/plain$/],
  ['too many bytes', { text: `x: ${'y'.repeat(70_000)}` }, /^longer than 65536 bytes$/],
  ['another version', { text: 'version: STSv2' }, /^the version is not STSv1$/],
  ['an untrusted certificate', { isSelfSigned: true }, /^TLS: self-signed certificate/],
]

test('check 36: a policy that is not served as it must be is no policy, and its fault is kept', async (t) => {
  const far = await startFar(t, { isPlain: true })
  for (const [name, policy, why] of unfetched) {
    publish(far, '1', { text: policyOf('enforce', far.host), ...policy })
    assert.equal(((await mail(far)) as { policy: string }).policy, 'opportunistic', name)
    const [row] = await db.query<{ failure: string; mode: null }>(
      'select failure, mode from mta_sts_policy where domain = $1',
      [far.domain],
    )
    assert.match(row!.failure, why)
    clock.advance(300_000)
  }
})

test('check 36: without its policy host a domain keeps the policy that is known, and is asked every five minutes', async (t) => {
  const unknown = await startFar(t, { isPlain: true })
  const known = await startFar(t, { isPlain: true })
  down.add(unknown.domain)
  assert.equal(((await mail(unknown)) as { policy: string }).policy, 'opportunistic')
  await assertDeferred(known, /does not start TLS$/)
  down.add(known.domain)
  publish(known, '2', { text: policyOf('none', known.host) })
  await assertDeferred(known, /does not start TLS$/)
  down.clear()
  fetches.length = 0
  await assertDeferred(known, /does not start TLS$/)
  unknown.mails.length = 0
  await mail(unknown)
  assert.deepEqual(fetches, [], 'within five minutes of the failure')
  clock.advance(300_000)
  assert.equal(((await mail(known)) as { policy: string }).policy, 'opportunistic')
  await assertDeferred({ ...unknown, mails: [] }, /does not start TLS$/)
  assert.deepEqual(fetches.sort(), [known.domain, unknown.domain].sort())
})

test('check 36: if DNS does not answer, a policy is looked for again after ten seconds', async (t) => {
  const far = await startFar(t, { isPlain: true })
  const rules = new MtaSts(deps)
  dns.fail(`_mta-sts.${far.domain}`, 'SERVFAIL')
  assert.equal(((await mail(far, rules)) as { policy: string }).policy, 'opportunistic')
  dns.fail(`_mta-sts.${far.domain}`, null)
  clock.advance(10_000)
  await assertDeferred({ ...far, mails: [] }, /does not start TLS$/, rules)
})

test('check 36: a policy holds without a record until it expires', async (t) => {
  const far = await startFar(t, { isPlain: true })
  await assertDeferred(far, /does not start TLS$/)
  dns.remove(`_mta-sts.${far.domain}`)
  await assertDeferred(far, /does not start TLS$/)
  clock.advance(604_800_000)
  assert.equal(((await mail(far)) as { policy: string }).policy, 'opportunistic')
})

test('check 36: a known policy costs no look-up, and a new id is seen within five minutes', async (t) => {
  const far = await startFar(t)
  let queries = 0
  const writer = { query: (text: string, values: unknown[]) => ++queries && db.writer.query(text, values) }
  const rules = new MtaSts({ ...deps, db: { writer } as Db })
  await mail(far, rules)
  const asked = () => [dns.asked.filter(({ type }) => type === 'TXT').length, fetches.length, queries]
  const before = asked()
  publish(far, '2', { text: policyOf('enforce', 'elsewhere.test') })
  for (let times = 0; times < 3; times++) await mail(far, rules)
  assert.deepEqual(asked(), before)
  clock.advance(300_000)
  far.mails.length = 0
  await assertDeferred(far, /does not name this mail server$/, rules)
})

const tracing: TraceDeps = {
  policies: deps,
  domains: new ProvedDomains({ db, clock }),
  routePolicy: { mode: 'direct', isLocal: (domain) => domain === 'inbox.test', choosePool: () => null },
  nextHop: stage.nextHopWith(new MtaSts(deps)),
  rules: builtInRules,
}

test('a trace names hosts, source, policy and outcome of mail, connects to no server and stores no policy', async (t) => {
  const [far, other] = [await startFar(t), await startFar(t)]
  dns.set(far.domain, {
    MX: [
      [10, far.host],
      [20, other.host],
    ],
  })
  const found = await traceDelivery(tracing, { email: `You@${far.domain.toUpperCase()}` })
  assert.deepEqual(
    found.hosts.map(({ host, port, source, tls, refusal }) => [host, port, source, tls, refusal]),
    [
      [far.host, mxPort, '127.0.0.1', 'mta-sts enforce', null],
      [
        other.host,
        mxPort,
        '127.0.0.1',
        'refused',
        'MTA-STS policy (enforce): the policy does not name this mail server',
      ],
    ],
  )
  assert.deepEqual(found.mtaSts, {
    policy: { mode: 'enforce', mx: [far.host], maxAgeSeconds: 604_800 },
    fault: null,
  })
  assert.deepEqual(
    [found.recipient, found.route, found.queue, found.outcome, found.reasons],
    [`You@${far.domain}`, { queue: far.domain, nextHop: 'mx' }, null, 'sent', []],
  )
  assert.deepEqual([far.connections, other.connections], [0, 0])
  assert.deepEqual(await db.query('select from mta_sts_policy where domain = $1', [far.domain]), [])

  dns.set(far.domain, { MX: [[10, other.host]] })
  const none = { ...tracing, nextHop: stage.nextHopWith(new MtaSts(deps)) }
  const refused = await traceDelivery(none, { email: `you@${far.domain}` })
  assert.deepEqual([refused.outcome, refused.reasons.length], ['waits', 1])
  assert.match(refused.reasons[0]!, /does not name this mail server$/)
})

test('a trace names what holds mail back: the queue, the domain, the sender', async () => {
  dns.set('held.test', { A: ['127.0.0.1'] })
  dns.set('null.test', { MX: [[0, '.']] })
  const outcome = async (email: string, organizationId?: string) => {
    const found = await traceDelivery(tracing, { email, organizationId })
    return `${found.outcome} ${found.reasons.join('; ')}`.trim()
  }
  assert.equal(await outcome('one@held.test'), 'sent')
  await pauseQueue({ db, clock }, 'held.test', 'paused')
  assert.equal(await outcome('one@held.test'), 'waits the queue is paused')
  await pauseQueue({ db, clock }, 'held.test', 'running')
  const notBefore = new Date(clock.nowMs() + 60_000)
  await db.query(
    `update route set failures = 2, not_before = $1, last_fault = 'no answer' where key = 'held.test'`,
    [notBefore],
  )
  assert.equal(
    await outcome('one@held.test'),
    `waits the queue waits until ${notBefore.toISOString()} (failure 2): no answer`,
  )
  assert.equal(await outcome('one@null.test'), 'fails the domain accepts no mail')
  assert.equal(await outcome('one@absent.test'), 'fails the domain does not exist')
  assert.equal(await outcome('one@inbox.test'), 'waits no node takes mail (role mx)')

  const limits = { ...defaultLimits, messagesPerDay: 0 }
  const organization = await createOrganization({ db, clock }, { name: 'Far', status: 'active', limits })
  assert.match(
    await outcome('one@absent.test', organization.id),
    /^refused the limit messagesPerDay is reached for \d+ s; /,
  )
  const [email, addressKey] = ['ONE@null.test', 'one@null.test']
  const suppression = { organizationId: organization.id, email, addressKey, note: null, since: null }
  await db.transaction((tx) => insertSuppression(tx, { ...suppression, reason: 'manual' }, clock.now()))
  assert.match(
    await outcome('one@null.test', organization.id),
    /^refused the address is suppressed \(manual, since 20/,
  )
  await assert.rejects(outcome('one@null.test', '00000000-0000-7000-8000-000000000000'), {
    code: 'not_found',
  })
  await assert.rejects(outcome('no address'), { code: 'invalid_request' })
})

test('check 36: policies of domains in use are fetched again before they expire, and unused ones are deleted', async (t) => {
  const refresh = () => refreshPolicies(deps, 100, new AbortController().signal)
  const used = await startFar(t)
  await mail(used)
  fetches.length = 0
  await refresh()
  assert.ok(!fetches.includes(used.domain))
  clock.advance(86_400_000)
  await refresh()
  assert.ok(fetches.includes(used.domain))
  const expiry = async () => {
    const found = await db.query<{ at: Date }>(
      'select expires_at as at from mta_sts_policy where domain = $1',
      [used.domain],
    )
    return found[0]?.at
  }
  assert.ok(Math.abs((await expiry())!.getTime() - clock.nowMs() - 604_800_000) < 60_000)
  clock.advance(31 * 86_400_000)
  fetches.length = 0
  await refresh()
  assert.deepEqual(fetches, [], 'no mail went to any of the domains for a month')
  await purgeStale({ db, clock }, 500)
  assert.equal(await expiry(), undefined)
})
