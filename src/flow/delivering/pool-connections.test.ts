// Connections of a queue with a pool: their source address and EHLO name, and another source if the server blocks one.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Rule, startSink } from '../../../tests/support/sink.ts'
import { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { ClaimedDelivery } from '../../store/sending/deliveries.ts'
import type { SourcePool } from '../source-pools.ts'
import { resultOf } from './endings.ts'
import { type NextHopDeps, openRoute } from './next-hop.ts'
import { Shaper } from './shaper.ts'
import { builtInRules } from './shaping-rules.ts'

const backup = '127.0.0.78'
const pool: SourcePool = {
  name: 'shop',
  organizations: [],
  purposes: [],
  sources: [
    { address: '127.0.0.75', ehlo: 'shop1.test', warmUp: null },
    { address: '127.0.0.76', ehlo: 'shop2.test', warmUp: null },
  ],
}

/** Opens the queue's connections to a server with this rule, and to one of another provider. Stores nothing. */
async function startPool(t: TestContext, rule: Rule, pools: readonly SourcePool[] = [pool]) {
  const hellos: string[] = []
  const sink = await startSink(t, {
    host: '127.0.0.77',
    rule: (step) => {
      if (step.stage === 'hello') hellos.push(`${step.peer} ${step.command}`)
      return rule(step)
    },
  })
  const clock = new Clock()
  const db = { writer: { query: async () => [] } } as never
  const node = { nodeId: null, hasOthers: false }
  const shaper = new Shaper({ db, clock, log: silentLog, rules: builtInRules, pools, node })
  await startSink(t, { host: backup, port: sink.port })
  const hosts = [{ name: 'mx.far.test', addresses: [sink.host], dane: null }]
  const found = { status: 'ok', hosts, searched: [] as string[], left: 0 }
  const deps: NextHopDeps = {
    hopFinder: { find: async () => found } as never,
    resolver: { resolve: async () => assert.fail('no TLSA records are asked for') },
    pools,
    mode: 'direct',
    relay: null,
    mxPort: sink.port,
    outbound: { ipv4: null, ipv6: null },
    ehloName: 'me.test',
    ownEhloName: () => 'me.test',
    listAddresses: async () => [],
  }
  const { signal } = new AbortController()
  const open = async (route: string, asked: string[] = []) => {
    const enter = (target: { host: string; address: string }) => shaper.enter(route, target, 1, signal)
    const opened = await openRoute(deps, route, { asker: '', signal, asked, enter })
    if ('connection' in opened) t.after(() => opened.connection.destroy())
    return opened
  }
  return { clock, hellos, open, found }
}

test('connections of a pool are divided among its sources, each of which greets with its own name', async (t) => {
  const { hellos, open } = await startPool(t, () => null)
  for (const _ of [1, 2, 3, 4]) assert.ok('connection' in (await open('shop:far.test')))
  assert.deepEqual(hellos.sort(), [
    '127.0.0.75 EHLO shop1.test',
    '127.0.0.75 EHLO shop1.test',
    '127.0.0.76 EHLO shop2.test',
    '127.0.0.76 EHLO shop2.test',
  ])
})

test('a queue without a pool, and one whose pool is not in the file, leave from the usual address', async (t) => {
  const { hellos, open } = await startPool(t, () => null)
  for (const route of ['far.test', 'gone:far.test']) assert.ok('connection' in (await open(route)))
  assert.deepEqual(hellos, ['127.0.0.1 EHLO me.test', '127.0.0.1 EHLO me.test'])
})

test('a server that blocks one source at its banner is asked from the other in the same attempt', async (t) => {
  const isBlocked = new Set(['127.0.0.75'])
  const { clock, hellos, open, found } = await startPool(t, ({ stage, peer }) =>
    stage === 'banner' && isBlocked.has(peer) ? '554 5.7.1 your IP is on our block list' : null,
  )
  for (const _ of [1, 2, 3]) assert.ok('connection' in (await open('shop:far.test')))
  assert.deepEqual(new Set(hellos), new Set(['127.0.0.76 EHLO shop2.test']))
  // If the other is blocked too, the queue is held until one is back, without a fault.
  isBlocked.add('127.0.0.76')
  const held = await open('shop:far.test')
  assert.ok('heldUntilMs' in held && held.heldUntilMs > clock.nowMs() + 3_000_000)
  // The domain's next server belongs to another provider.
  found.hosts.push({ name: 'mx.backup.test', addresses: [backup], dane: null })
  const atBackup = await open('shop:far.test')
  assert.ok('connection' in atBackup && atBackup.connection.remote.ip === backup)
  isBlocked.clear()
  clock.advance(4_000_000)
  assert.ok('connection' in (await open('shop:far.test')))
})

test('a source without an address on this machine leaves its connections to the others', async (t) => {
  const sources = [pool.sources[0]!, { address: '192.0.2.77', ehlo: 'lost.test', warmUp: null }]
  const { hellos, open } = await startPool(t, () => null, [{ ...pool, sources }])
  for (let count = 0; count < 5; count++) assert.ok('connection' in (await open('shop:far.test')))
  assert.deepEqual(new Set(hellos), new Set(['127.0.0.75 EHLO shop1.test']))
})

test('a server that answers no source is a fault of the queue', async (t) => {
  const { open } = await startPool(t, () => 'cut')
  const opened = await open('shop:far.test')
  assert.ok('fault' in opened)
  assert.ok('fault' in (await open('shop:far.test')))
})

test('a pool without an address of the server’s family sends nothing, and the fault says so', async (t) => {
  const sources = [{ address: '::1', ehlo: 'six.test', warmUp: null }]
  const { open, found } = await startPool(t, () => assert.fail('a connection'), [{ ...pool, sources }])
  const opened = await open('shop:far.test')
  assert.ok('fault' in opened)
  assert.match(opened.fault.text, /its mail servers need IPv4, which the pool shop lacks/)
  // The next attempt asks the servers that were not searched yet, which may have another family.
  Object.assign(found, { searched: ['mx.far.test'], left: 1 })
  const later = await open('shop:far.test', ['mx0.far.test'])
  assert.ok('fault' in later)
  assert.deepEqual(later.fault.asked, ['mx0.far.test', 'mx.far.test'])
})

test('a recipient refused because of the source is due again at once, and bounces without a pool', () => {
  const clock = new Clock()
  const deps = { clock, retryScheduleMs: [60_000] }
  const job = { route: 'shop:far.test', epoch: 1 } as never
  const delivery = { attempts: 1, expiresAt: new Date(clock.nowMs() + 3_600_000) } as ClaimedDelivery
  const reply = { code: 554, enhanced: '5.7.1', text: 'Client host [127.0.0.75] blocked using bl.test' }
  const refused = { outcome: 'refused', stage: 'rcpt', reply: { ...reply, lines: [reply.text] } } as never
  const attempt = { beganAt: clock.now(), beganMs: performance.now(), remote: null, steps: [] }
  const { status, dueAt, outcome } = resultOf(deps, job, delivery, refused, { ...attempt, isBlocked: true })
  assert.deepEqual([status, outcome?.type, outcome?.classification], ['deferred', 'deferred', 'spam'])
  assert.ok(dueAt!.getTime() <= clock.nowMs())
  // Later attempts wait, because the server may refuse this recipient in such words each time.
  const again = { ...delivery, attempts: 2 }
  const later = resultOf(deps, job, again, refused, { ...attempt, isBlocked: true })
  assert.ok(later.status === 'deferred' && later.dueAt!.getTime() > clock.nowMs() + 30_000)
  assert.equal(resultOf(deps, job, delivery, refused, { ...attempt, isBlocked: false }).status, 'bounced')
})
