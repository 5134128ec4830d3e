// Tests the stub resolver on knot and unbound: it reads the same records as c-ares, and the TTLs of the zone.
import assert from 'node:assert/strict'
import { Resolver as SystemResolver } from 'node:dns/promises'
import { before, test } from 'node:test'
import { Clock } from '../../src/base/clock.ts'
import { DnsCache } from '../../src/dns/cache.ts'
import { type DnsType, Resolver } from '../../src/dns/resolver.ts'
import { NameServers, nameServersMissing } from './name-servers.ts'

const missing = nameServersMissing()
before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

const zone = 'dns.example'
const long = Array.from({ length: 240 }, (_, index) => `"${String(index).padEnd(200, 'x')}"`).join(' ')
const lines = [
  'mail 40 MX 10 Mx1',
  'mail 40 MX 20 mx2.elsewhere.example.',
  'mx1 50 A 192.0.2.1',
  'mx1 50 A 192.0.2.2',
  'mx1 50 AAAA 2001:db8::1',
  'text 30 TXT "v=spf1 " "-all"',
  'text 30 TXT "\\"quoted\\" \\\\ \\195\\169"',
  `long 30 TXT ${long}`,
  'null 30 MX 0 .',
  'zero 0 TXT "now"',
  'alias1 90 CNAME alias2',
  'alias2 20 CNAME mx1',
  'dangling 90 CNAME nowhere',
  'a\\.b 30 TXT "a dot within a label"',
  'escaped 30 MX 10 a\\.b',
  'reverse 30 PTR MX1',
  '*.wild 30 TXT "any"',
  'under.a 30 TXT "below"',
  `_25._tcp.mx1 30 TLSA 3 1 1 ${'0A'.repeat(32)}`,
  `_25._tcp.mx1 30 TLSA 2 0 2 ${'FF'.repeat(64)}`,
]
const published = `$ORIGIN ${zone}.\n${lines.join('\n')}\n`

/** Asks c-ares the same question, and returns its answer in our form. */
const peers: { [Type in DnsType]: (system: SystemResolver, name: string) => Promise<unknown[]> } = {
  MX: async (system, name) =>
    (await system.resolveMx(name)).map((mx) => ({
      exchange: mx.exchange.toLowerCase(),
      preference: mx.priority,
    })),
  A: async (system, name) =>
    (await system.resolve4(name, { ttl: true })).map(({ address, ttl }) => ({ address, ttlSeconds: ttl })),
  AAAA: async (system, name) =>
    (await system.resolve6(name, { ttl: true })).map(({ address, ttl }) => ({ address, ttlSeconds: ttl })),
  TXT: async (system, name) => (await system.resolveTxt(name)).map((strings) => strings.join('')),
  CNAME: (system, name) => system.resolveCname(name),
  TLSA: async (system, name) =>
    (await system.resolveTlsa(name)).map(({ certUsage: usage, selector, match: matchingType, data }) => ({
      usage,
      selector,
      matchingType,
      association: Buffer.from(data).toString('hex'),
    })),
  PTR: async (system, name) => (await system.resolvePtr(name)).map((host) => host.toLowerCase()),
}

/** Returns the sorted records, or the status if there are none. */
async function peerAnswer(system: SystemResolver, type: DnsType, name: string): Promise<unknown> {
  try {
    return inOrder(await peers[type](system, name))
  } catch (error) {
    return { ENOTFOUND: 'nxdomain', ENODATA: 'nodata' }[(error as NodeJS.ErrnoException).code!] ?? 'temporary'
  }
}

function inOrder(records: unknown[]): string[] {
  return records.map((record) => JSON.stringify(record)).sort()
}

const questions: [DnsType, string][] = [
  ...(['mail', 'null', 'escaped', 'missing', 'mx1'] as const).map((name): [DnsType, string] => ['MX', name]),
  ...(['mx1', 'alias1', 'dangling', 'mail', 'a'] as const).map((name): [DnsType, string] => ['A', name]),
  ...(['mx1', 'alias1'] as const).map((name): [DnsType, string] => ['AAAA', name]),
  ...(['text', 'long', 'zero', 'a\\.b', 'any.wild', 'under.a', 'missing'] as const).map(
    (name): [DnsType, string] => ['TXT', name],
  ),
  ['CNAME', 'alias1'],
  ['PTR', 'reverse'],
  ['TLSA', '_25._tcp.mx1'],
]

test('check 52: the resolver works with knot and unbound', { skip: missing ?? false }, async (t) => {
  const servers = await NameServers.start(t, zone)
  await servers.publish(published)
  for (const [what, address] of [
    ['unbound', servers.address],
    ['knot', servers.authority],
  ] as const) {
    const resolver = new Resolver({ servers: [address], timeoutMs: 2_000 })
    const system = new SystemResolver({ timeout: 2_000, tries: 2 })
    system.setServers([address])
    await t.test(`${what}: the answers equal those of c-ares`, async (t) => {
      const compare = async ([type, name]: [DnsType, string]) => {
        const [answer, peer] = await Promise.all([
          resolver.resolve(type, `${name}.${zone}`),
          peerAnswer(system, type, `${name}.${zone}`),
        ])
        const ours = answer.status === 'ok' ? inOrder(answer.records) : answer.status
        return { question: `${type} ${name}`, ours, peer }
      }
      const compared = await Promise.all(questions.map(compare))
      for (const { question, ours, peer } of compared) assert.deepEqual(ours, peer, question)
      t.diagnostic(`${compared.length} questions answered alike`)
    })
  }

  await t.test('the TTLs equal those of the zone', async () => {
    const resolver = new Resolver({ servers: [servers.authority], timeoutMs: 2_000 })
    const ttlOf = async (type: DnsType, name: string) => {
      const answer = await resolver.resolve(type, `${name}.${zone}`)
      return answer.status === 'temporary' ? answer.reason : answer.ttlSeconds
    }
    assert.deepEqual(
      {
        mx: await ttlOf('MX', 'mail'),
        text: await ttlOf('TXT', 'text'),
        long: await ttlOf('TXT', 'long'),
        ptr: await ttlOf('PTR', 'reverse'),
        zero: await ttlOf('TXT', 'zero'),
        chain: await ttlOf('A', 'alias1'),
        // The zone's SOA gives negative answers a TTL of 0.
        absent: await ttlOf('A', 'missing'),
        noSuchType: await ttlOf('TXT', 'mail'),
      },
      { mx: 40, text: 30, long: 30, ptr: 30, zero: 0, chain: 20, absent: 0, noSuchType: 0 },
    )
  })

  await t.test('a cached answer outlives its server until its TTL ends', async () => {
    const clock = new Clock()
    const resolver = new Resolver({ servers: [servers.authority], timeoutMs: 300, tries: 1 })
    const cache = new DnsCache({ resolver, clock })
    const statusOf = async () => (await cache.lookup('TXT', `text.${zone}`)).status
    const seen = [await statusOf()]
    await servers.stopAuthority()
    clock.advance(29_000)
    seen.push(await statusOf())
    clock.advance(1_000)
    seen.push(await statusOf())
    await servers.startAuthority()
    clock.advance(2_000)
    seen.push(await statusOf())
    assert.deepEqual(seen, ['ok', 'ok', 'temporary', 'ok'])
  })
})
