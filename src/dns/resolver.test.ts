// DNS answers and faults as values, against a DNS server of our own.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { until } from '../../tests/support/until.ts'
import { type DnsType, Resolver } from './resolver.ts'

const faultNames = ['servfail', 'refused', 'silent', 'garbage', 'other', 'foreign', 'elsewhere', 'referral']
let server: DnsServer
let resolver: Resolver
const tlsa = { usage: 3, selector: 1, matchingType: 1, association: '0a'.repeat(32) }
const longText = 'v=spf1 '.padEnd(60_000, 'x')

before(async () => {
  server = await DnsServer.start({
    'mail.example': { MX: [[10, 'Mx1.Mail.Example']], TXT: ['one', ['two ', 'strings']] },
    'mx1.mail.example': { A: ['192.0.2.1', '192.0.2.2'], AAAA: ['2001:db8::1'], ttlSeconds: 77 },
    'null.example': { MX: [[0, '.']] },
    'long.example': { TXT: [longText] },
    'zero.example': { A: ['192.0.2.9'], ttlSeconds: 0 },
    'alias.example': { CNAME: 'alias2.example' },
    'alias2.example': { CNAME: 'mx1.mail.example' },
    'dangling.example': { CNAME: 'gone.example' },
    'loop1.example': { CNAME: 'loop2.example' },
    'loop2.example': { CNAME: 'loop1.example' },
    'many.example': { MX: Array.from({ length: 100 }, (_, index) => [index, `mx${index}.many.example`]) },
    'tc.example': { A: ['192.0.2.3'] },
    ...Object.fromEntries(faultNames.map((name) => [`${name}.example`, { A: ['192.0.2.66'] }])),
    'short.example': { CNAME: 'mx1.mail.example', ttlSeconds: 9 },
    'strings.example': { TXT: [Array.from({ length: 300 }, (_, index) => `${index} `)] },
    '1.2.0.192.in-addr.arpa': { PTR: ['MX1.mail.example'] },
    'plain.example': { A: ['192.0.2.4'] },
    ...Object.fromEntries(
      Array.from({ length: 12 }, (_, step) => [`step${step}.example`, { CNAME: `step${step + 1}.example` }]),
    ),
    'step12.example': { A: ['192.0.2.12'] },
    '_25._tcp.tlsa.example': { TLSA: [tlsa, { ...tlsa, usage: 255, association: '' }] },
    'away.signed.example': { CNAME: 'mx1.mail.example' },
    'a.signed.example': { A: ['192.0.2.13'] },
  })
  server.signed.add('signed.example')
  server.fail('tc.example', 'truncated')
  server.fail('servfail.example', 'SERVFAIL')
  server.fail('refused.example', 'REFUSED')
  server.fail('silent.example', 'silent')
  server.fail('garbage.example', 'garbage')
  server.fail('other.example', 'otherId')
  server.fail('foreign.example', 'otherQuestion')
  server.fail('elsewhere.example', 'otherPort')
  server.fail('referral.example', 'referral')
  server.fail('plain.example', 'withoutEdns')
  resolver = new Resolver({ servers: [server.address], timeoutMs: 100, tries: 2 })
})
after(() => server.close())

const host = (...addresses: string[]) => addresses.map((address) => ({ address, ttlSeconds: 77 }))

const answers: [string, DnsType, string, unknown][] = [
  ['PTR', 'PTR', '1.2.0.192.in-addr.arpa', ['mx1.mail.example']],
  [
    'a name in capitals, with its dot',
    'MX',
    'MAIL.example.',
    [{ exchange: 'mx1.mail.example', preference: 10 }],
  ],
  [
    'a text of 300 strings',
    'TXT',
    'strings.example',
    [Array.from({ length: 300 }, (_, index) => `${index} `).join('')],
  ],
  ['ten aliases', 'A', 'step2.example', [{ address: '192.0.2.12', ttlSeconds: 300 }]],
  ['a server without EDNS', 'A', 'plain.example', [{ address: '192.0.2.4', ttlSeconds: 300 }]],
  ['MX', 'MX', 'mail.example', [{ exchange: 'mx1.mail.example', preference: 10 }]],
  ['a null MX', 'MX', 'null.example', [{ exchange: '', preference: 0 }]],
  ['A', 'A', 'mx1.mail.example', host('192.0.2.1', '192.0.2.2')],
  ['AAAA', 'AAAA', 'mx1.mail.example', host('2001:db8::1')],
  ['TXT', 'TXT', 'mail.example', ['one', 'two strings']],
  ['60 kB of TXT, over TCP', 'TXT', 'long.example', [longText]],
  ['CNAME', 'CNAME', 'alias.example', ['alias2.example']],
  ['A behind a chain of CNAMEs', 'A', 'alias.example', host('192.0.2.1', '192.0.2.2')],
  ['TLSA', 'TLSA', '_25._tcp.tlsa.example', [tlsa, { ...tlsa, usage: 255, association: '' }]],
  ['a TTL of 0', 'A', 'zero.example', [{ address: '192.0.2.9', ttlSeconds: 0 }]],
  [
    'a truncated answer, asked again over TCP',
    'A',
    'tc.example',
    [{ address: '192.0.2.3', ttlSeconds: 300 }],
  ],
]

for (const [what, type, name, records] of answers) {
  test(`check 52: a question gets its answer: ${what}`, async () => {
    const answer = await resolver.resolve(type, name)
    assert.deepEqual(answer.status === 'ok' && answer.records, records)
  })
}

const absences: [string, DnsType, string, string][] = [
  ['a name that does not exist', 'A', 'missing.example', 'nxdomain'],
  ['a name too long to exist', 'A', `${'a'.repeat(64)}.example`, 'nxdomain'],
  ['a name without this type', 'AAAA', 'zero.example', 'nodata'],
  ['a name that only stands above others', 'A', 'example', 'nodata'],
  ['a CNAME to nowhere', 'A', 'dangling.example', 'nodata'],
  ['a loop of CNAMEs', 'A', 'loop1.example', 'nodata'],
]

for (const [what, type, name, status] of absences) {
  test(`check 52: ${what} is ${status}`, async () => {
    assert.deepEqual(await resolver.resolve(type, name), { status })
  })
}

const faults: [string, RegExp][] = [
  ['servfail.example', /SERVFAIL/],
  ['refused.example', /REFUSED/],
  ['silent.example', /in time/],
  ['garbage.example', /malformed/],
  ['other.example', /malformed/],
  ['foreign.example', /malformed/],
  ['elsewhere.example', /in time/],
  ['referral.example', /does not answer for others/],
  ['step1.example', /more than 10 aliases/],
]

for (const [name, reason] of faults) {
  test(`check 52: ${name} is temporary, in bounded time`, async () => {
    const startedMs = performance.now()
    const answer = await resolver.resolve('A', name)
    assert.ok(answer.status === 'temporary' && reason.test(answer.reason), JSON.stringify(answer))
    assert.ok(performance.now() - startedMs < 2000)
  })
}

const proofs: [string, DnsType, string, boolean][] = [
  ['a signed answer', 'A', 'a.signed.example', true],
  ['a signed absence', 'TLSA', '_25._tcp.a.signed.example', true],
  ['an unsigned answer', 'A', 'mx1.mail.example', false],
  ['a signed alias for an unsigned name', 'A', 'away.signed.example', false],
]

for (const [what, type, name, isProved] of proofs)
  test(`check 35: ${what} is ${isProved ? '' : 'not '}proved by DNSSEC`, async () => {
    const answer = await resolver.resolve(type, name)
    assert.ok(answer.status !== 'temporary')
    assert.equal(answer.isAuthenticated ?? false, isProved)
  })

test('check 35: the flag of a resolver that is not trusted proves nothing', async () => {
  const elsewhere = new Resolver({ servers: [server.address], isTrusted: () => false })
  const answer = await elsewhere.resolve('A', 'a.signed.example')
  assert.ok(answer.status === 'ok' && answer.isAuthenticated === undefined)
})

test('check 35: an answer names the end of its aliases', async () => {
  const [direct, alias] = [
    await resolver.resolve('A', 'zero.example'),
    await resolver.resolve('A', 'alias.example'),
  ]
  assert.equal('canonicalName' in direct, false)
  assert.equal(alias.status === 'ok' && alias.canonicalName, 'mx1.mail.example')
})

test('check 52: 100 MX records arrive over TCP', async () => {
  const answer = await resolver.resolve('MX', 'many.example')
  assert.equal(answer.status === 'ok' && answer.records.length, 100)
})

test('the resolver caches no answer', async () => {
  const count = () => server.asked.filter(({ name }) => name === 'zero.example').length
  const before = count()
  await resolver.resolve('A', 'zero.example')
  await resolver.resolve('A', 'zero.example')
  assert.equal(count() - before, 2)
})

test('check 52: the answer is temporary if no server listens', async () => {
  const gone = await DnsServer.start()
  await gone.close()
  const answer = await new Resolver({ servers: [gone.address], timeoutMs: 100, tries: 1 }).resolve(
    'A',
    'a.example',
  )
  assert.equal(answer.status, 'temporary')
})

test('check 52: the second server answers if the first is silent', async () => {
  const other = await DnsServer.start({ 'silent.example': { A: ['192.0.2.5'] } })
  const both = new Resolver({ servers: [server.address, other.address], timeoutMs: 100, tries: 2 })
  const answer = await both.resolve('A', 'silent.example')
  await other.close()
  assert.deepEqual(answer, {
    status: 'ok',
    records: [{ address: '192.0.2.5', ttlSeconds: 300 }],
    ttlSeconds: 300,
  })
})

for (const [what, name] of [
  ['refuses', 'refused.example'],
  ['knows nothing itself and asks nobody', 'referral.example'],
  ['fails', 'servfail.example'],
] as const)
  test(`check 52: a server that ${what} is asked once, and the next one answers`, async () => {
    const good = await DnsServer.start({ [name]: { A: ['192.0.2.7'] } })
    const both = new Resolver({ servers: [server.address, good.address], timeoutMs: 1_000 })
    const before = server.asked.length
    const answer = await both.resolve('A', name)
    await good.close()
    assert.deepEqual(answer.status === 'ok' && answer.records, [{ address: '192.0.2.7', ttlSeconds: 300 }])
    assert.equal(server.asked.length - before, 1)
  })

test('check 52: a silent server is asked last for a while, and first again once it answers', async () => {
  const [dead, good] = [await DnsServer.start(), await DnsServer.start({ 'a.example': { A: ['192.0.2.8'] } })]
  dead.fail('a.example', 'silent')
  const both = new Resolver({ servers: [dead.address, good.address], timeoutMs: 60, tries: 1 })
  const asked = async (name: string) => {
    const before = dead.asked.length
    await both.resolve('A', name)
    return dead.asked.length - before
  }
  const counts = [await asked('a.example'), await asked('a.example')]
  good.fail('b.example', 'SERVFAIL')
  counts.push(await asked('b.example'), await asked('a.example'))
  await Promise.all([dead.close(), good.close()])
  assert.deepEqual(counts, [1, 0, 1, 1])
})

const ttls: [string, DnsType, string, number][] = [
  ['its own', 'A', 'mx1.mail.example', 77],
  ['that of MX, TXT and PTR too', 'MX', 'mail.example', 300],
  ['the shortest of its aliases', 'A', 'short.example', 9],
  ['0', 'A', 'zero.example', 0],
]

for (const [what, type, name, ttlSeconds] of ttls)
  test(`check 52: the TTL of an answer is ${what}`, async () => {
    const answer = await resolver.resolve(type, name)
    assert.deepEqual('ttlSeconds' in answer && answer.ttlSeconds, ttlSeconds)
  })

const negatives: [string, string, NonNullable<DnsServer['soa']> | null, number | undefined][] = [
  ['the number in the SOA', 'missing.example', { zone: 'example', ttlSeconds: 900, minimumSeconds: 60 }, 60],
  ['the TTL of the SOA', 'missing.example', { zone: 'example', ttlSeconds: 30, minimumSeconds: 60 }, 30],
  ['the same for a type', 'mail.example', { zone: 'example', ttlSeconds: 30, minimumSeconds: 60 }, 30],
  [
    'that of an alias to nowhere',
    'dangling.example',
    { zone: 'example', ttlSeconds: 900, minimumSeconds: 600 },
    300,
  ],
  ['unknown without a SOA', 'missing.example', null, undefined],
  [
    'unknown with another zone’s',
    'missing.example',
    { zone: 'test', ttlSeconds: 9, minimumSeconds: 9 },
    undefined,
  ],
]

for (const [what, name, soa, ttlSeconds] of negatives)
  test(`check 52: the TTL of an absence is ${what}`, async () => {
    server.soa = soa
    const answer = await resolver.resolve('AAAA', name)
    server.soa = null
    assert.ok(answer.status === 'nxdomain' || answer.status === 'nodata', answer.status)
    assert.equal(answer.ttlSeconds, ttlSeconds)
  })

test('check 52: a server at an IPv6 address answers over UDP and TCP', async () => {
  const six = await DnsServer.start({ 'six.example': { TXT: [longText] } }, { host: '::1' })
  const answer = await new Resolver({ servers: [six.address], timeoutMs: 1_000 }).resolve(
    'TXT',
    'six.example',
  )
  await six.close()
  assert.deepEqual(answer.status === 'ok' && answer.records, [longText])
})

test('check 52: each question leaves from another port, with another id', async () => {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const [ports, ids] = [new Set<number>(), new Set<number>()]
  socket.on('message', (bytes, { port }) => {
    ports.add(port)
    ids.add(bytes.readUInt16BE(0))
  })
  const address = `127.0.0.1:${socket.address().port}`
  const asking = new Resolver({ servers: [address], timeoutMs: 200, tries: 1 })
  await Promise.all(Array.from({ length: 100 }, (_, index) => asking.resolve('A', `name${index}.example`)))
  socket.close()
  assert.equal(ports.size, 100)
  assert.ok(ids.size > 95, `${ids.size} ids`)
})

/** The DNS server holds one socket. Closed sockets disappear a moment later. */
const openSockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'UDPWrap').length

test('check 52: an aborted question ends at once, with its socket and its retries', async () => {
  const patient = new Resolver({ servers: [server.address], timeoutMs: 30_000 })
  await until('a quiet resolver', () => openSockets() === 1)
  const before = server.asked.length
  const ending = new AbortController()
  const answers = ['A', 'AAAA'].map((type) =>
    patient.resolve(type as DnsType, 'silent.example', { signal: ending.signal }),
  )
  await until('two questions', () => server.asked.length === before + 2)
  assert.equal(openSockets(), 3)
  ending.abort()
  for (const { status } of await Promise.all(answers)) assert.equal(status, 'temporary')
  await until('their sockets to close', () => openSockets() === 1)
  assert.equal(server.asked.length, before + 2)
  const late = await patient.resolve('A', 'mx1.mail.example', { signal: ending.signal })
  assert.deepEqual([late.status, server.asked.length], ['temporary', before + 2])
})

test('check 52: retries and TCP queries count against a look-up’s budget', async () => {
  const before = server.asked.length
  const queries = { left: 5 }
  await resolver.resolve('TXT', 'long.example', { queries })
  await resolver.resolve('A', 'silent.example', { queries })
  const last = await resolver.resolve('A', 'silent.example', { queries })
  assert.equal(server.asked.length - before, 5)
  assert.equal('reason' in last && last.reason, 'too many DNS questions would have to be asked')
})
