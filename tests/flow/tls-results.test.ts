// Reports about TLS: real mail servers give each kind of result, which is counted per day, domain and policy, within bounds.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { MtaSts } from '../../src/flow/delivering/mta-sts.ts'
import { openRoute } from '../../src/flow/delivering/next-hop.ts'
import { dueTlsReports } from '../../src/flow/tls-reports/send-tls-report.ts'
import { TlsSessions } from '../../src/flow/tls-reports/tls-sessions.ts'
import type { SessionResult } from '../../src/mailauth/tls-report/report.ts'
import { Db } from '../../src/postgres/db.ts'
import { noteTls } from '../../src/store/domains/tls-reports.ts'
import { testDatabase } from '../support/postgres.ts'
import { type Far, type FarOptions, openStsStage, policyOf } from '../support/sts-stage.ts'
import { inReverse } from '../support/until.ts'

const scope = inReverse({ after })
const stage = await openStsStage(scope)
const { dns, down, publish, startFar } = stage
const db = new Db({ connection: await testDatabase(scope), maxConnections: 4 })
scope.after(() => db.close())
const clock = new Clock()
const rules = () =>
  new MtaSts({ db, clock, log: silentLog, resolver: stage.resolver, fetcher: stage.fetcher })

/** Opens a connection as a delivery does. Returns the results that were noted. */
async function connectTo({ domain }: Far, route = domain): Promise<SessionResult[]> {
  const results: SessionResult[] = []
  const noteTls = (named: string, result: SessionResult) => {
    assert.equal(named, domain)
    results.push(result)
  }
  const deps = { ...stage.nextHopWith(rules()), noteTls }
  const opened = await openRoute(deps, route, { asker: '', asked: [], signal: new AbortController().signal })
  if ('connection' in opened) await opened.connection.quit()
  return results
}

/** The only result, with the type of its policy. */
async function resultOf(far: Far) {
  const [result, ...others] = await connectTo(far)
  assert.ok(result && others.length === 0)
  return { type: result.policy.type, ...result }
}

const failures: [name: string, options: FarOptions, type: string][] = [
  ['a certificate for another name', { named: 'other.test' }, 'certificate-host-mismatch'],
  ['an expired certificate', { toDays: -1 }, 'certificate-expired'],
  ['a self-signed certificate', { isSelfSigned: true }, 'certificate-not-trusted'],
  ['no STARTTLS', { isPlain: true }, 'starttls-not-supported'],
  ['a name that the policy lacks', { mx: '*.other.test' }, 'validation-failure'],
]

for (const [name, options, type] of failures)
  for (const mode of ['enforce', 'testing'])
    test(`a session with a server with ${name} fails as ${type} under a policy (${mode})`, async (t) => {
      const far = await startFar(t, { ...options, mode })
      const { policy, failure } = (await connectTo(far))[0]!
      assert.deepEqual([policy.type, policy.domain, policy.lines[1]], ['sts', far.domain, `mode: ${mode}`])
      assert.deepEqual([failure?.type, failure?.host], [type, far.host])
      // A server that the enforced policy does not name is not connected to.
      const isAsked = far.connections > 0
      assert.equal(isAsked, type !== 'validation-failure' || mode === 'testing')
      assert.deepEqual([failure?.ip, failure?.sendingIp !== null], [isAsked ? far.address : null, isAsked])
    })

test('sessions that succeed name the policy that they obeyed, or that there is none', async (t) => {
  const far = await startFar(t)
  const lines = ['version: STSv1', 'mode: enforce', `mx: ${far.host}`, 'max_age: 604800']
  const policy = { type: 'sts', domain: far.domain, lines, mx: [far.host] }
  assert.deepEqual(await connectTo(far), [{ policy, failure: null }])
  const none = await startFar(t, { isSelfSigned: true, mode: 'none' })
  const { type, failure } = await resultOf(none)
  assert.deepEqual([type, failure], ['no-policy-found', null])
  const plain = await startFar(t, { isPlain: true, mode: 'none' })
  assert.equal((await resultOf(plain)).failure?.type, 'starttls-not-supported')
})

test('a policy that cannot be fetched or read is the failure of the session, which goes on without it', async (t) => {
  const cases: [prepare: (far: Far) => void, type: string][] = [
    [(far) => down.add(far.domain), 'sts-policy-fetch-error'],
    [(far) => publish(far, '1', { text: 'version: STSv2' }), 'sts-policy-invalid'],
    [
      (far) => publish(far, '1', { text: policyOf('enforce', far.host), isSelfSigned: true }),
      'sts-webpki-invalid',
    ],
  ]
  for (const [prepare, type] of cases) {
    const far = await startFar(t)
    prepare(far)
    const found = (await connectTo(far))[0]!
    assert.deepEqual([found.policy.type, found.failure?.type, found.policy.lines], ['sts', type, []])
    assert.equal(far.connections, 1)
  }
})

test('DANE names its records, and their faults', async (t) => {
  const far = await startFar(t, { mode: 'none' })
  dns.signed.add(far.domain)
  const name = `_${stage.mxPort}._tcp.${far.host}`
  const record = (usage: number) => ({ usage, selector: 1, matchingType: 1, association: '11'.repeat(32) })
  dns.set(name, { TLSA: [record(3)] })
  const mismatch = await resultOf(far)
  assert.deepEqual(
    [mismatch.policy, mismatch.failure?.type],
    [
      { type: 'tlsa', domain: far.host, lines: [`3 1 1 ${'11'.repeat(32)}`], mx: [] },
      'certificate-not-trusted',
    ],
  )
  dns.set(name, { TLSA: [record(0)] })
  assert.deepEqual((await resultOf(far)).failure?.type, 'tlsa-invalid')
  dns.fail(name, 'SERVFAIL')
  assert.deepEqual((await resultOf(far)).failure?.type, 'dnssec-invalid')
})

test('mail whose sender ignores or exceeds the policy says nothing about it, nor does a server that is down', async (t) => {
  const far = await startFar(t, { isPlain: true })
  assert.deepEqual(await connectTo(far, `anytls:${far.domain}`), [])
  assert.deepEqual(await connectTo(far, `requiretls:${far.domain}`), [])
  dns.set(far.host, { A: ['127.0.0.38'] })
  assert.deepEqual(await connectTo(far), [])
})

const success = (domain: string): SessionResult => ({
  policy: { type: 'no-policy-found', domain, lines: [], mx: [] },
  failure: null,
})

async function storedOf(policyDomain: string) {
  return await db.query<{ kinds: number; omitted: number; amounts: number[] }>(
    `select kinds, omitted, array(select s.amount from tls_session s
      where s.day = r.day and s.policy_domain = r.policy_domain order by 1)::integer[] as amounts
    from tls_report r where policy_domain = $1 order by day`,
    [policyDomain],
  )
}

function sessionsOf(t: TestContext, record: string | null, domain: string) {
  if (record === null) dns.fail(`_smtp._tls.${domain}`, 'SERVFAIL')
  else dns.set(`_smtp._tls.${domain}`, { TXT: [record] })
  t.after(() => dns.fail(`_smtp._tls.${domain}`, null))
  return new TlsSessions({ db, clock, lookup: (type, name) => stage.resolver.resolve(type, name) })
}

test('sessions of several nodes add up per day, and a day ends at midnight UTC', async (t) => {
  const domain = 'counted.test'
  const nodes = [1, 2].map(() => sessionsOf(t, 'v=TLSRPTv1; rua=mailto:t@counted.test', domain))
  const untilMidnight = 86_400_000 - (clock.nowMs() % 86_400_000)
  for (const node of nodes) for (let times = 0; times < 3; times++) node.note(domain, success(domain))
  await Promise.all(nodes.map((node) => node.flush()))
  clock.advance(untilMidnight + 1)
  nodes[0]!.note(domain, success(domain))
  await nodes[0]!.flush()
  assert.deepEqual(
    (await storedOf(domain)).map(({ amounts }) => amounts),
    [[6], [1]],
  )
  const at = new Date(clock.nowMs() + 48 * 3_600_000)
  const claims = await Promise.all([1, 2, 3].map(() => dueTlsReports.claim(db.writer, at, new Date(8.64e15))))
  assert.equal(claims.filter((claim) => claim !== null).length, 2)
})

test('only sessions of domains that ask for reports are stored, and those of domains whose DNS fails', async (t) => {
  const wants: [record: string | null, isStored: boolean][] = [
    ['v=TLSRPTv1; rua=mailto:t@far.test', true],
    ['v=spf1 -all', false],
    [null, true],
  ]
  for (const [i, [record, isStored]] of wants.entries()) {
    const domain = `wish${i}.test`
    const sessions = sessionsOf(t, record, domain)
    sessions.note(domain, success(domain))
    await sessions.flush()
    assert.equal((await storedOf(domain)).length, isStored ? 1 : 0, record ?? 'SERVFAIL')
  }
})

test('the rows of a day, a report and a registered domain are bounded, and sessions without a row are counted', async () => {
  await db.query('delete from tls_report')
  const day = clock.now().toISOString().slice(0, 10)
  const bounds = { maxReports: 4, maxReportsOfDomain: 2, maxKinds: 5, maxKindsOfReport: 2 }
  const note = (policyDomain: string, ...names: string[]) =>
    noteTls(
      db.writer,
      names.map((name) => ({
        day,
        policyDomain,
        result: { name },
        amount: 2,
        registeredDomain: policyDomain.slice(-6),
        dueAt: clock.now(),
      })),
      bounds,
    )
  await note('a.test', 'one', 'two', 'three')
  await note('a.test', 'one')
  await note('x.b.test', 'one')
  await note('y.b.test', 'one')
  await note('z.b.test', 'one')
  await note('c.test', 'one', 'two')
  await note('d.test', 'one')
  const stored = await db.query<{ name: string; kinds: number; omitted: number }>(
    'select policy_domain as name, kinds, omitted::integer as omitted from tls_report order by 1',
  )
  assert.deepEqual(stored, [
    { name: 'a.test', kinds: 2, omitted: 2 },
    { name: 'c.test', kinds: 1, omitted: 2 },
    { name: 'x.b.test', kinds: 1, omitted: 0 },
    { name: 'y.b.test', kinds: 1, omitted: 0 },
  ])
})
