// Finds mail servers through a DNS server of our own, faults included.
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { mxZone } from '../../tests/support/mx-zone.ts'
import { until } from '../../tests/support/until.ts'
import { Clock } from '../base/clock.ts'
import { HopFinder, type HopFinderOptions } from './mx.ts'
import { isPublicUnicast } from './public-address.ts'
import { Resolver } from './resolver.ts'

let server: DnsServer
let resolver: Pick<Resolver, 'resolve'>
/** Moves only if a test moves it, so that no look-up is late on a busy machine. */
class StillClock extends Clock {
  #nowMs = 0

  override monotonicMs(): number {
    return this.#nowMs
  }

  override advance(ms: number): void {
    this.#nowMs += ms
  }
}

before(async () => {
  server = await DnsServer.start(mxZone)
  server.fail('broken.example', 'SERVFAIL', 'MX')
  server.fail('servfail.example', 'SERVFAIL')
  server.fail('silent.example', 'silent')
  for (let n = 0; n < 100; n++) server.fail(`mx${n}.unanswered.example`, 'silent')
  const asked = new Resolver({ servers: [server.address], tries: 2, deadlineMs: 60_000 })
  // Only silence ends by a timeout: an answer may be late on a busy machine.
  resolver = {
    resolve: (type, name, asking) =>
      asked.resolve(type, name, { ...asking, timeoutMs: isSilent(name) ? 30 : 60_000 }),
  }
})
after(() => server.close())

function isSilent(name: string): boolean {
  return name === 'silent.example' || /^mx\d+\.unanswered\.example$/.test(name)
}

function finder(options: Partial<HopFinderOptions> = {}): HopFinder {
  return new HopFinder({
    resolver,
    isAllowed: isPublicUnicast,
    random: () => 0,
    clock: new StillClock(),
    deadlineMs: 60_000,
    ...options,
  })
}

const found: [string, string, [string, number, string[]][]][] = [
  [
    'hosts come by preference, addresses by turns',
    'ordered.example',
    [
      ['one.example', 10, ['8.8.1.1', '2a00::1', '8.8.1.2']],
      ['backup.example', 20, ['2a00::2']],
    ],
  ],
  [
    'a name is asked for whatever its case and final dot',
    'PLAIN.example.',
    [['plain.example', 0, ['8.8.2.1']]],
  ],
  ['without MX the domain is its own host', 'plain.example', [['plain.example', 0, ['8.8.2.1']]]],
  ['an MX that is a CNAME is followed', 'cname.example', [['alias.example', 5, ['8.8.2.1']]]],
  [
    '"." beside other MX records is passed over',
    'half-null.example',
    [['one.example', 10, ['8.8.1.1', '2a00::1', '8.8.1.2']]],
  ],
  [
    'a host with private addresses only is passed over',
    'partly-inward.example',
    [['plain.example', 20, ['8.8.2.1']]],
  ],
  [
    'a host that cannot be looked up now is passed over',
    'half-broken.example',
    [['plain.example', 20, ['8.8.2.1']]],
  ],
]

for (const [what, domain, hosts] of found) {
  test(`check 33: ${what}`, async () => {
    const hops = await finder().find(domain)
    const wanted = hosts.map(([name, preference, addresses]) => ({ name, preference, addresses, dane: null }))
    assert.deepEqual(hops.status === 'ok' && [hops.hosts, hops.left], [wanted, 0])
  })
}

const notFound: [string, string, string][] = [
  ['null MX', 'null.example', 'null_mx'],
  ['no such domain', 'missing.example', 'domain_not_found'],
  ['neither MX nor address', 'empty.example', 'no_address'],
  ['an MX that does not exist', 'dangling.example', 'no_address'],
  ['an MX that is an address', 'literal.example', 'no_address'],
  ['an MX on loopback and private addresses', 'inward.example', 'no_address'],
  ['a loop of CNAMEs', 'loop.example', 'no_address'],
  ['SERVFAIL for the MX', 'broken.example', 'temporary'],
  ['SERVFAIL for the only host', 'broken-host.example', 'temporary'],
  ['silence', 'silent.example', 'temporary'],
]

for (const [what, domain, status] of notFound) {
  test(`check 33, 52: ${what} is ${status}`, async () => {
    assert.equal((await finder().find(domain)).status, status)
  })
}

test('check 33: private addresses are reached if the operator allows it', async () => {
  const hops = await finder({ isAllowed: () => true }).find('inward.example')
  assert.deepEqual(hops.status === 'ok' && hops.hosts[0]?.addresses, [
    '127.0.0.1',
    '::1',
    '10.1.2.3',
    'fd00::1',
  ])
})

test('check 33: hosts of equal preference are shuffled, even when remembered', async () => {
  const lots = [0, 0, 0, 0, 0.9, 0.1, 0.5, 0.3, 0.1, 0.9, 0.3, 0.5]
  const shuffled = finder({ random: () => lots.shift()! })
  const names = async () => {
    const hops = await shuffled.find('equal.example')
    return hops.status === 'ok' ? hops.hosts.map(({ name }) => name[0]).join('') : hops.status
  }
  const [first, second] = [await names(), await names()]
  assert.deepEqual([[...first].sort().join(''), [...second].sort().join('')], ['abcd', 'abcd'])
  assert.notEqual(first, second)
})

test('check 52: a domain with 100 MX records has 14 hosts looked up and 40 addresses kept', async () => {
  const asked = server.asked.length
  const hops = await finder().find('many.example')
  assert.ok(hops.status === 'ok')
  assert.equal(hops.hosts.flatMap(({ addresses }) => addresses).length, 40)
  assert.equal(hops.hosts[0]?.preference, 1)
  const hosts = server.asked.slice(asked).filter(({ name, type }) => name.startsWith('mx') && type === 'A')
  assert.equal(hosts.length, 14)
})

for (const dead of [1, 17])
  test(`check 33, 52: the first mail server after ${dead} without an address is found`, async () => {
    const hops = await finder().find(`after-${dead}.example`)
    assert.deepEqual(hops.status === 'ok' && hops.hosts.map(({ name }) => name), ['plain.example'])
  })

test('check 52: a domain is temporary if its first 18 mail servers have no address', async () => {
  const asked = server.asked.length
  const hops = await finder().find('after-120.example')
  assert.deepEqual(
    [hops.status, 'reason' in hops && hops.reason],
    ['temporary', 'none of the first 18 of its mail servers has an address'],
  )
  assert.ok(server.asked.length - asked <= 40, `${server.asked.length - asked} queries`)
})

for (const [what, domain, wanted] of [
  ['as the best of several', 'half-moved.example', 'mail_loop'],
  ['by its address under another name', 'at-our-address.example', 'mail_loop'],
  ['as the domain itself', 'bare.example', 'mail_loop'],
  ['behind an address that may not be reached', 'split-horizon.example', 'mail_loop'],
  ['below a server that cannot be looked up now', 'below-unknown.example', 'temporary'],
  ['among 40 equals', 'among-equals.example', 'mail_loop'],
  ['as the backup of another', 'we-are-backup.example', 'plain.example'],
] as const)
  test(`check 33: our own mail server ${what} yields ${wanted}`, async () => {
    const own = new Set(['8.8.9.1', '10.1.2.3'])
    const isOwn = async (name: string, addresses: readonly string[]) =>
      name === 'ours.example' || addresses.some((address) => own.has(address))
    const hops = await finder({ isOwn }).find(domain)
    const found = hops.status === 'ok' ? hops.hosts.map(({ name }) => name).join() : hops.status
    assert.equal(found, wanted)
    if (hops.status === 'mail_loop') assert.match(hops.reason, /mail loop/)
  })

test('hostile 21: unresolved mail servers cost at most 40 queries, and the mail waits', async () => {
  const asked = server.asked.length
  const hops = await finder().find('unanswered.example')
  assert.equal(hops.status, 'temporary')
  const count = server.asked.length - asked
  assert.ok(count > 20 && count <= 40, `${count} queries`)
})

test('check 33: a mail server that was found waits a second for unresolved ones, and ten for slow ones', async () => {
  for (const [domain, waitMs, left] of [
    ['partly-unanswered.example', 900, 16],
    ['partly-unanswered.example', 1_100, 18],
    ['many.example', 800, 87],
    ['many.example', 5_500, 98],
  ] as const) {
    const clock = new StillClock()
    const slow: Pick<Resolver, 'resolve'> = {
      resolve: async (type, name, asking) => {
        const answer = await resolver.resolve(type, name, asking)
        if (type === 'A' && !name.startsWith('plain')) clock.advance(waitMs)
        return answer
      },
    }
    const hops = await finder({ resolver: slow, clock }).find(domain)
    assert.deepEqual([domain, hops.status === 'ok' && hops.left], [domain, left])
  }
})

/** The DNS server holds one socket. Closed sockets disappear a moment later. */
const openSockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'UDPWrap').length

test('hostile 21: one deadline ends all questions of a look-up', async () => {
  const slow = new Resolver({ servers: [server.address], timeoutMs: 60_000, tries: 1, deadlineMs: 60_000 })
  const startedMs = performance.now()
  const hops = await finder({ resolver: slow, deadlineMs: 50 }).find('unanswered.example')
  assert.deepEqual(hops, { status: 'temporary', reason: 'DNS took too long' })
  // Without the deadline, the question alone would take 60 s.
  assert.ok(performance.now() - startedMs < 30_000)
  await until('the sockets to close', () => openSockets() === 1)
})

test('hostile 21: a look-up ends when its last caller leaves, and not before', async () => {
  const slow = new Resolver({ servers: [server.address], timeoutMs: 60_000, tries: 1, deadlineMs: 60_000 })
  const shared = finder({ resolver: slow, deadlineMs: 20_000 })
  await until('a quiet resolver', () => openSockets() === 1)
  const asked = server.asked.length
  const endings = [new AbortController(), new AbortController()]
  const [first, second] = endings.map(({ signal }) => shared.find('silent.example', { asker: 'one', signal }))
  await until('one question', () => server.asked.length === asked + 1)
  endings[0]!.abort()
  assert.equal((await first!).status, 'temporary')
  assert.equal(openSockets(), 2)
  endings[1]!.abort()
  assert.equal((await second!).status, 'temporary')
  await until('its socket to close', () => openSockets() === 1)
  assert.equal(server.asked.length, asked + 1)
})

test('no asker waits for another asker’s look-up, which may wait for its share', async () => {
  let hasAnswered = false
  const stuck = finder({
    resolver: {
      resolve: async (type, name, asking = {}) => {
        if (asking.asker !== 'much') return await resolver.resolve(type, name, asking)
        return await new Promise((_, reject) => asking.signal!.addEventListener('abort', reject))
      },
    },
  })
  void stuck.find('plain.example', { asker: 'much' }).finally(() => (hasAnswered = true))
  assert.equal((await stuck.find('plain.example', { asker: 'little' })).status, 'ok')
  assert.equal(hasAnswered, false)
})

const remembered: [domain: string, laterMs: number, questions: number, absenceSeconds?: number][] = [
  ['short.example', 9_000, 0],
  ['short.example', 11_000, 3],
  ['fleeting.example', 0, 3],
  ['moving.example', 9_000, 0],
  ['moving.example', 11_000, 3],
  ['ordered.example', 299_000, 0],
  ['ordered.example', 301_000, 5],
  ['null.example', 59_000, 0],
  ['null.example', 61_000, 1],
  ['broken.example', 0, 1],
  ['missing.example', 0, 1],
  ['missing.example', 29_000, 0, 30],
  ['missing.example', 31_000, 1, 30],
  ['missing.example', 59_000, 0, 3_600],
  ['missing.example', 61_000, 1, 3_600],
  ['dangling.example', 0, 3],
  ['dangling.example', 29_000, 0, 30],
  ['dangling.example', 31_000, 3, 30],
]

/** Absences get a SOA with this TTL. */
function setAbsence(t: TestContext, seconds: number | undefined): void {
  server.soa = seconds ? { zone: 'example', ttlSeconds: seconds, minimumSeconds: seconds } : null
  t.after(() => {
    server.soa = null
  })
}

for (const [domain, laterMs, questions, absenceSeconds] of remembered) {
  test(`${domain} costs ${questions} questions again after ${laterMs} ms${absenceSeconds ? `, absent for ${absenceSeconds} s` : ''}`, async (t) => {
    setAbsence(t, absenceSeconds)
    const clock = new StillClock()
    const remembering = finder({ clock })
    await remembering.find(domain)
    clock.advance(laterMs)
    const distinct = new Set<string>()
    const before = server.asked.length
    await remembering.find(domain)
    for (const { name, type } of server.asked.slice(before)) distinct.add(`${name} ${type}`)
    assert.equal(distinct.size, questions)
  })
}

test('the newest domains are remembered, up to the bound', async (t) => {
  setAbsence(t, 60)
  const remembering = finder({ maxCached: 2 })
  for (const domain of ['plain.example', 'null.example', 'missing.example']) await remembering.find(domain)
  const before = server.asked.length
  await remembering.find('missing.example')
  await remembering.find('null.example')
  assert.equal(server.asked.length, before)
  await remembering.find('plain.example')
  assert.ok(server.asked.length > before)
})

test('concurrent callers share one answer', async () => {
  const shared = finder()
  const before = server.asked.length
  const hops = await Promise.all(Array.from({ length: 10 }, () => shared.find('plain.example')))
  assert.ok(hops.every(({ status }) => status === 'ok'))
  assert.equal(server.asked.length - before, 3)
})
