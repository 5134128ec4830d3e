// DNS answers and faults as values, against a DNS server of our own.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { type DnsType, Resolver } from './resolver.ts'

let server: DnsServer
let resolver: Resolver
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
    ...Object.fromEntries(
      ['servfail', 'refused', 'silent', 'garbage', 'other'].map((name) => [`${name}.example`, {}]),
    ),
  })
  server.fail('tc.example', 'truncated')
  server.fail('servfail.example', 'SERVFAIL')
  server.fail('refused.example', 'REFUSED')
  server.fail('silent.example', 'silent')
  server.fail('garbage.example', 'garbage')
  server.fail('other.example', 'otherId')
  resolver = new Resolver({ servers: [server.address], timeoutMs: 100, tries: 2 })
})
after(() => server.close())

const host = (...addresses: string[]) => addresses.map((address) => ({ address, ttlSeconds: 77 }))

const answers: [string, DnsType, string, unknown][] = [
  ['MX', 'MX', 'mail.example', [{ exchange: 'mx1.mail.example', preference: 10 }]],
  ['a null MX', 'MX', 'null.example', [{ exchange: '', preference: 0 }]],
  ['A', 'A', 'mx1.mail.example', host('192.0.2.1', '192.0.2.2')],
  ['AAAA', 'AAAA', 'mx1.mail.example', host('2001:db8::1')],
  ['TXT', 'TXT', 'mail.example', ['one', 'two strings']],
  ['60 kB of TXT, over TCP', 'TXT', 'long.example', [longText]],
  ['CNAME', 'CNAME', 'alias.example', ['alias2.example']],
  ['A behind a chain of CNAMEs', 'A', 'alias.example', host('192.0.2.1', '192.0.2.2')],
  ['a TTL of 0', 'A', 'zero.example', [{ address: '192.0.2.9', ttlSeconds: 0 }]],
  [
    'a truncated answer, asked again over TCP',
    'A',
    'tc.example',
    [{ address: '192.0.2.3', ttlSeconds: 300 }],
  ],
]

for (const [what, type, name, records] of answers) {
  test(`check 52: ${what}`, async () => {
    assert.deepEqual(await resolver.resolve(type, name), { status: 'ok', records })
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
  ['garbage.example', /malformed|in time/],
  ['other.example', /in time/],
]

for (const [name, reason] of faults) {
  test(`check 52: ${name} is temporary, in bounded time`, async () => {
    const startedMs = performance.now()
    const answer = await resolver.resolve('A', name)
    assert.ok(answer.status === 'temporary' && reason.test(answer.reason), JSON.stringify(answer))
    assert.ok(performance.now() - startedMs < 2000)
  })
}

test('check 52: 100 MX records arrive, over TCP', async () => {
  const answer = await resolver.resolve('MX', 'many.example')
  assert.equal(answer.status === 'ok' && answer.records.length, 100)
})

test('no answer is kept by the resolver', async () => {
  const count = () => server.asked.filter(({ name }) => name === 'zero.example').length
  const before = count()
  await resolver.resolve('A', 'zero.example')
  await resolver.resolve('A', 'zero.example')
  assert.equal(count() - before, 2)
})

test('check 52: without any server that listens the answer is temporary', async () => {
  const gone = await DnsServer.start()
  await gone.close()
  const answer = await new Resolver({ servers: [gone.address], timeoutMs: 100, tries: 1 }).resolve(
    'A',
    'a.example',
  )
  assert.equal(answer.status, 'temporary')
})

test('check 52: the second server answers where the first is silent', async () => {
  const other = await DnsServer.start({ 'silent.example': { A: ['192.0.2.5'] } })
  const both = new Resolver({ servers: [server.address, other.address], timeoutMs: 100, tries: 2 })
  const answer = await both.resolve('A', 'silent.example')
  await other.close()
  assert.deepEqual(answer, { status: 'ok', records: [{ address: '192.0.2.5', ttlSeconds: 300 }] })
})
