// REQUIRETLS and TLS-Required (RFC 8689) on the way out: real mail servers, policies and certificates of every kind.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { MtaSts } from '../../src/flow/delivering/mta-sts.ts'
import { openRoute } from '../../src/flow/delivering/next-hop.ts'
import { routeFor, withWishes } from '../../src/flow/route-policy.ts'
import { Db } from '../../src/postgres/db.ts'
import { moveToRoutes } from '../../src/store/sending/deliveries.ts'
import { listQueues } from '../../src/store/sending/routes.ts'
import { testDatabase } from '../support/postgres.ts'
import { type Far, type FarOptions, openStsStage, policyOf } from '../support/sts-stage.ts'
import { inReverse } from '../support/until.ts'

const scope = inReverse({ after })
const stage = await openStsStage(scope)
const { dns, down, publish } = stage
const db = new Db({ connection: await testDatabase(scope), maxConnections: 2 })
scope.after(() => db.close())
const clock = new Clock()
const rules = () =>
  new MtaSts({ db, clock, log: silentLog, resolver: stage.resolver, fetcher: stage.fetcher })

const startFar = (t: TestContext, options: FarOptions = {}) =>
  stage.startFar(t, { knowsRequireTls: true, ...options })

/** Sends a mail as the queue's worker does. Returns the refusal or the fault; null if it was delivered. */
async function send(far: Far, queue: 'requiretls' | 'anytls') {
  const asking = { asker: '', asked: [], signal: new AbortController().signal }
  const opened = await openRoute(stage.nextHopWith(rules()), `${queue}:${far.domain}`, asking)
  if (!('connection' in opened)) return opened
  const envelope = { from: 'me@me.test', to: `you@${far.domain}`, needsUtf8: false }
  const { recipients } = await opened.connection.send([envelope], Buffer.from('Subject: hi\r\n\r\nhi\r\n'))
  await opened.connection.quit()
  assert.equal(recipients[0]!.outcome, 'delivered')
  return null
}

const mailsOf = ({ mails }: Far) => mails.map(({ isEncrypted, requiresTls }) => [isEncrypted, requiresTls])

/** Asserts that the mail ends at once with the status, and that no server got it. */
async function assertRefused(far: Far, status: string, why: RegExp): Promise<void> {
  const result = await send(far, 'requiretls')
  assert.ok(result && 'refusal' in result, JSON.stringify(result))
  const { failureCode, enhancedStatus, reason } = result.refusal
  assert.deepEqual([failureCode, enhancedStatus], ['tls_required', status])
  assert.match(reason, why)
  assert.deepEqual(far.mails, [])
}

/** Asserts that the mail waits, and that no server got it. */
async function assertDeferred(far: Far, why: RegExp): Promise<void> {
  const result = await send(far, 'requiretls')
  assert.ok(result && 'fault' in result, JSON.stringify(result))
  assert.match(result.fault.text, why)
  assert.deepEqual(far.mails, [])
}

for (const mode of ['enforce', 'testing'])
  test(`a mail with REQUIRETLS goes to a verified server that a policy (${mode}) names, with the demand`, async (t) => {
    const far = await startFar(t, { mode })
    assert.equal(await send(far, 'requiretls'), null)
    assert.deepEqual(mailsOf(far), [[true, true]])
  })

const violations: [name: string, options: FarOptions, status: string, why: RegExp][] = [
  ['does not know REQUIRETLS', { knowsRequireTls: false }, '5.7.30', /does not support REQUIRETLS$/],
  ['has a certificate for another name', { named: 'other.test' }, '5.7.10', /not for mx\.sts\d+\.test$/],
  ['has an expired certificate', { toDays: -1 }, '5.7.10', /has expired$/],
  ['offers no STARTTLS', { isPlain: true }, '5.7.10', /does not start TLS$/],
  ['is in no policy', { mode: 'none' }, '5.7.10', /neither DNSSEC nor an MTA-STS policy/],
  [
    'the tested policy does not name',
    { mode: 'testing', mx: '*.other.test' },
    '5.7.10',
    /neither DNSSEC nor/,
  ],
]

for (const [name, options, status, why] of violations)
  test(`a mail with REQUIRETLS ends at once if the server ${name}`, async (t) => {
    await assertRefused(await startFar(t, options), status, why)
  })

test('a mail with REQUIRETLS goes to the first of the servers that meets the demand', async (t) => {
  const plain = await startFar(t, { isPlain: true })
  const unknowing = await startFar(t, { knowsRequireTls: false })
  const good = await startFar(t)
  const far = { ...good, domain: 'three.test' }
  dns.set(far.domain, { MX: [plain, unknowing, good].map(({ host }, i) => [i, host]) })
  const others = `\r\nmx: ${unknowing.host}\r\nmx: ${good.host}`
  publish(far, '1', { text: policyOf('enforce', plain.host + others) })
  assert.equal(await send(far, 'requiretls'), null)
  assert.deepEqual([plain.mails.length, unknowing.mails.length], [0, 0])
  assert.deepEqual(mailsOf(good), [[true, true]])
})

test('a mail with REQUIRETLS needs no policy if DNSSEC proves the server, whose certificate or TLSA record counts', async (t) => {
  const far = await startFar(t, { mode: 'none' })
  dns.signed.add(far.domain)
  assert.equal(await send(far, 'requiretls'), null)
  const untrusted = await startFar(t, { mode: 'none', isSelfSigned: true })
  dns.signed.add(untrusted.domain)
  await assertRefused(untrusted, '5.7.10', /REQUIRETLS: its certificate is self-signed$/)
  dns.set(`_${stage.mxPort}._tcp.${far.host}`, {
    TLSA: [{ usage: 3, selector: 1, matchingType: 1, association: '11'.repeat(32) }],
  })
  far.mails.length = 0
  await assertRefused(far, '5.7.10', /its certificate is in no record/)
})

test('a mail with REQUIRETLS waits if the policy, the records or the server cannot be reached now', async (t) => {
  const unfetched = await startFar(t)
  down.add(unfetched.domain)
  await assertDeferred(unfetched, /the MTA-STS policy of the domain cannot be found now$/)
  const unanswered = await startFar(t, { mode: 'none' })
  dns.fail(`_mta-sts.${unanswered.domain}`, 'SERVFAIL')
  await assertDeferred(unanswered, /the MTA-STS policy of the domain cannot be found now$/)
  const absent = await startFar(t)
  dns.set(absent.host, { A: ['127.0.0.38'] })
  await assertDeferred(absent, /ECONNREFUSED/)
  const both = await startFar(t, { knowsRequireTls: false })
  dns.set(both.host, { A: [both.address, '127.0.0.38'] })
  await assertDeferred(both, /does not support REQUIRETLS.*ECONNREFUSED/)
})

test('a mail with TLS-Required: No goes to a server that the policies of its domain refuse', async (t) => {
  const far = await startFar(t, { isSelfSigned: true, mx: '*.other.test' })
  dns.signed.add(far.domain)
  dns.set(`_${stage.mxPort}._tcp.${far.host}`, {
    TLSA: [{ usage: 3, selector: 1, matchingType: 1, association: '11'.repeat(32) }],
  })
  assert.equal(await send(far, 'anytls'), null)
  assert.deepEqual(mailsOf(far), [[true, false]])
  const plain = await startFar(t, { isPlain: true })
  assert.equal(await send(plain, 'anytls'), null)
  assert.deepEqual(mailsOf(plain), [[false, false]])
})

test('a mail keeps its demand if the delivery mode changes', async () => {
  const at = clock.now()
  const routes = ['requiretls:far.test', 'anytls:far.test', 'far.test', 'requiretls:here.test']
  for (const [position, route] of routes.entries())
    await db.query(
      `insert into delivery (submission_id, position, organization_id, email, address_key, domain, route, status,
        due_at, expires_at, updated_at)
      values ('00000000-0000-7000-8000-000000000001', $1, '00000000-0000-7000-8000-000000000002', 'a', 'a',
        substring($2 from '[^:]+$'), $2, 'pending', $3, $3, $3)`,
      [position, route, at],
    )
  const found = async () =>
    (await db.query<{ route: string }>('select route from delivery order by position')).map(
      ({ route }) => route,
    )
  assert.equal(await moveToRoutes(db.writer, null, 'here.test', at), 1)
  assert.deepEqual(await found(), [...routes.slice(0, 3), 'requiretls:@local'])
  await moveToRoutes(db.writer, '@relay', 'here.test', at)
  assert.deepEqual(await found(), ['requiretls:@relay', 'anytls:@relay', '@relay', 'requiretls:@local'])
  await moveToRoutes(db.writer, null, 'here.test', at)
  assert.deepEqual(await found(), [...routes.slice(0, 3), 'requiretls:@local'])
  await moveToRoutes(db.writer, null, 'elsewhere.test', at)
  assert.deepEqual(await found(), routes, 'the domain is no longer ours')
})

test('our own nodes take a mail with REQUIRETLS without TLS', async (t) => {
  const far = await startFar(t, { isPlain: true, knowsRequireTls: false })
  const nextHop = {
    ...stage.nextHopWith(rules()),
    ownEhloName: () => 'own.test',
    listAddresses: async () => [`${far.address}:${stage.mxPort}`],
  }
  const route = routeFor('@local', 'required')
  const asking = { asker: '', asked: [], signal: new AbortController().signal }
  const opened = await openRoute(nextHop, route, asking)
  assert.ok('connection' in opened, JSON.stringify(opened))
  await opened.connection.quit()
})

test('a sender cannot pass by the pause of a domain with a wish for TLS', async () => {
  const states = async () =>
    await db.query(`select key, paused from route where key ~ 'paused.test$' order by key`)
  const all = (paused: boolean) =>
    withWishes('paused.test')
      .toSorted()
      .map((key) => ({ key, paused }))
  const listed = async () =>
    (await listQueues(db, null)).flatMap(({ key }) => (key.endsWith('paused.test') ? [key] : []))
  await pauseQueue({ db, clock }, 'paused.test', 'paused')
  assert.deepEqual(await states(), all(true))
  assert.deepEqual(await listed(), ['paused.test'], 'the others have no mail')
  await pauseQueue({ db, clock }, 'paused.test', 'running')
  assert.deepEqual(await states(), all(false))
  await pauseQueue({ db, clock }, 'anytls:paused.test', 'paused')
  const paused = (await states()).filter((row) => row['paused'])
  assert.deepEqual(paused, [{ key: 'anytls:paused.test', paused: true }])
  assert.deepEqual(await listed(), ['anytls:paused.test'])
})
