// Block lists at a DNS server on loopback, also lists that are silent, faulty or hold a subscriber's key.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { Clock } from '../base/clock.ts'
import { blocklists } from '../config/setting-values.ts'
import { Resolver } from '../dns/resolver.ts'
import { type Blocklist, Blocklists, checkLists, publicName } from './blocklists.ts'
import type { Lookup } from './lookup.ts'

const nobody6 = `1.0.0.0.0.0.f.7.f.f.f.f.${'0.'.repeat(20)}list.test`
const google6 = '8.8.8.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.8.4.0.6.8.4.1.0.0.2.list.test'

async function startDns(t: TestContext, zone: Parameters<typeof DnsServer.start>[0]) {
  const server = await DnsServer.start(zone)
  t.after(() => server.close())
  const resolver = new Resolver({ servers: [server.address], timeoutMs: 1_000, tries: 1 })
  const lookup: Lookup = (type, name) => resolver.resolve(type, name)
  return { server, lookup }
}

const listed = { outcome: 'listed' }
const notListed = { outcome: 'not_listed' }
const cases: [name: string, zone: Record<string, string[]>, ip: string, want: object][] = [
  ['an address that is listed', { '4.3.2.1.list.test': ['127.0.0.2'] }, '1.2.3.4', listed],
  ['one of several answers', { '4.3.2.1.list.test': ['127.0.0.4', '127.0.0.11'] }, '1.2.3.4', listed],
  ['an address that is not', { '2.0.0.127.list.test': ['127.0.0.2'] }, '1.2.3.4', notListed],
  ['a name without an address', { 'x.4.3.2.1.list.test': ['127.0.0.2'] }, '1.2.3.4', notListed],
  ['an IPv6 address that is listed', { [google6]: ['127.0.0.2'] }, '2001:4860:4860::8888', listed],
  ['an IPv6 address that is not', { [google6]: ['127.0.0.2'] }, '2001:4860:4860::8844', notListed],
  [
    'a refusal to answer',
    { '4.3.2.1.list.test': ['127.255.255.254'] },
    '1.2.3.4',
    { outcome: 'fault', reason: 'it answered 127.255.255.254, which is no listing' },
  ],
  [
    'a domain that somebody else has by now',
    { '4.3.2.1.list.test': ['93.184.215.14'] },
    '1.2.3.4',
    { outcome: 'fault', reason: 'it answered 93.184.215.14, which is no listing' },
  ],
  [
    'a list that lists everybody',
    { '4.3.2.1.list.test': ['127.0.0.2'], '1.0.0.127.list.test': ['127.0.0.2'] },
    '1.2.3.4',
    { outcome: 'fault', reason: 'it lists everybody' },
  ],
  [
    'a list that lists everybody of IPv6',
    { [google6]: ['127.0.0.2'], [nobody6]: ['127.0.0.2'] },
    '2001:4860:4860::8888',
    { outcome: 'fault', reason: 'it lists everybody' },
  ],
]
for (const [name, zone, ip, want] of cases)
  test(`check 52: block lists: ${name}`, async (t) => {
    const records = Object.entries(zone).map(([host, A]) => [host, { A }])
    const { lookup } = await startDns(t, Object.fromEntries(records))
    assert.deepEqual(await checkLists(lookup, ip, ['list.test']), [{ zone: 'list.test', ...want }])
  })

test('check 52: block lists: a malformed or failed answer lists no one and counts as a fault', async (t) => {
  const { server, lookup } = await startDns(t, { '4.3.2.1.list.test': { A: ['127.0.0.2'] } })
  for (const name of ['1.0.0.127.list.test', '4.3.2.1.list.test'])
    for (const fault of ['SERVFAIL', 'silent', 'garbage'] as const) {
      server.fail(name, fault)
      const [answer] = await checkLists(lookup, '1.2.3.4', ['list.test'])
      assert.equal(answer!.outcome, 'fault', `${name} ${fault}`)
      server.fail(name, null)
    }
  assert.equal((await checkLists(lookup, '1.2.3.4', ['list.test']))[0]!.outcome, 'listed')
})

function start(lookup: Lookup, lists: Blocklist[], deadlineMs = 5_000) {
  const clock = new Clock()
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  return { clock, lines, node: new Blocklists({ lookup, lists, clock, log, deadlineMs }) }
}

test('block lists are asked together, and refusals are kept apart from notes', async (t) => {
  const key = 'abcdefghijklmnopqrstuvwxyz'
  const hosts = [`4.3.2.1.${key}.dq.test`, '4.3.2.1.told.test', '5.3.2.1.told.test']
  const { server, lookup } = await startDns(
    t,
    Object.fromEntries(hosts.map((host) => [host, { A: ['127.0.0.3'] }])),
  )
  const { node } = start(lookup, blocklists(`tell:told.test,clean.test,${key}.dq.test`)!)
  const release = server.hold()
  const answered = node.check('1.2.3.4')
  while (server.held < 3) await new Promise((resolve) => setImmediate(resolve))
  release()
  // A subscriber's key must not leave this node.
  assert.deepEqual(await answered, { listedBy: ['told.test', 'dq.test'], refusedBy: 'dq.test' })
  assert.deepEqual(await node.check('1.2.3.5'), { listedBy: ['told.test'], refusedBy: null })
  const askedBefore = server.asked.length
  for (const address of ['127.0.0.1', '10.1.2.3', '192.168.1.1', '::1', 'fe80::1'])
    assert.deepEqual(await node.check(address), { listedBy: [], refusedBy: null })
  assert.equal(server.asked.length, askedBefore, 'who is not on the Internet is known to no list')
})

test('check 52: a silent list is tried five times, logged once, and used again when it answers', async () => {
  // The other list's answer is known at once. Only the silent list delays the result, until the deadline.
  const listing = ['4.3.2.1.silent.test', '4.3.2.1.list.test']
  let isSilent = true
  let asked = 0
  const answer = (name: string) => {
    if (name === '4.3.2.1.silent.test') asked++
    if (name.endsWith('silent.test') && isSilent) return new Promise<never>(() => {})
    return listing.includes(name)
      ? { status: 'ok', records: [{ address: '127.0.0.2' }] }
      : { status: 'nxdomain' }
  }
  const lookup = ((_type, name) => answer(name)) as Lookup
  const { clock, lines, node } = start(lookup, blocklists('silent.test,list.test')!, 80)
  const check = async () => {
    const startMs = performance.now()
    const { listedBy } = await node.check('1.2.3.4')
    return { listedBy, waited: performance.now() - startMs >= 79 }
  }
  for (let i = 0; i < 5; i++) assert.deepEqual(await check(), { listedBy: ['list.test'], waited: true })
  const askedBefore = asked
  for (let i = 0; i < 20; i++) assert.deepEqual((await check()).listedBy, ['list.test'])
  assert.equal(asked, askedBefore)
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /silent\.test/)
  // One peer a minute asks whether the list answers again.
  clock.advance(60_001)
  assert.deepEqual((await Promise.all([check(), check(), check()])).map(({ waited }) => waited).sort(), [
    false,
    false,
    true,
  ])
  isSilent = false
  clock.advance(60_001)
  assert.deepEqual((await check()).listedBy, ['silent.test', 'list.test'])
  assert.deepEqual((await check()).listedBy, ['silent.test', 'list.test'])
})

for (const [zone, name] of [
  ['zen.spamhaus.org', 'zen.spamhaus.org'],
  ['abcdefghijklmnopqrstuvwxyz.zen.dq.spamhaus.net', 'zen.dq.spamhaus.net'],
  ['abcdefghijklmnopqrstuvwxyz.test', 'abcdefghijklmnopqrstuvwxyz.test'],
  ['test', 'test'],
] as const)
  test(`the list ${zone} is named ${name} in replies`, () => assert.equal(publicName(zone), name))
