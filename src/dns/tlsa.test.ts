// Finds the candidates for TLSA records, and the records, through a DNS server of our own with signed and unsigned zones.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { type DaneNames, HopFinder } from './mx.ts'
import { Resolver } from './resolver.ts'
import { findTlsa } from './tlsa.ts'

const record = { usage: 3, selector: 1, matchingType: 1, association: 'ab'.repeat(32) }
const other = { ...record, usage: 2 }
let server: DnsServer

before(async () => {
  server = await DnsServer.start({
    ...Object.fromEntries(
      ['mx', 'alias', 'leaving', 'unknown'].map((name) => [
        `to-${name}.signed.test`,
        { MX: [[10, `${name}.signed.test`]] },
      ]),
    ),
    'to-plain.signed.test': { MX: [[10, 'plain.example']] },
    'mx.signed.test': { A: ['8.8.1.1'] },
    'alias.signed.test': { CNAME: 'mx.signed.test' },
    'leaving.signed.test': { CNAME: 'plain.example' },
    'unknown.signed.test': { CNAME: 'plain.example' },
    'renamed.signed.test': { CNAME: 'to-mx.signed.test' },
    'unsigned.test': { MX: [[10, 'mx.signed.test']] },
    'plain.example': { A: ['8.8.2.1'] },
    '_25._tcp.mx.signed.test': { TLSA: [record, other] },
    '_25._tcp.alias.signed.test': { CNAME: '_25._tcp.mx.signed.test' },
    '_25._tcp.leaving.signed.test': { CNAME: '_25._tcp.mx.unsigned.test' },
    '_25._tcp.mx.unsigned.test': { TLSA: [record] },
    '_25._tcp.broken.signed.test': { TLSA: [record] },
  })
  server.signed.add('signed.test')
  server.fail('unknown.signed.test', 'SERVFAIL', 'CNAME')
  server.fail('_25._tcp.broken.signed.test', 'SERVFAIL')
})
after(() => server.close())

const found = { status: 'found', records: [record, other] }
for (const [what, bases, wanted] of [
  ['at the first name', ['mx.signed.test', 'broken.signed.test'], { ...found, base: 'mx.signed.test' }],
  ['at the second name', ['none.signed.test', 'mx.signed.test'], { ...found, base: 'mx.signed.test' }],
  ['by a signed alias', ['alias.signed.test'], { ...found, base: 'alias.signed.test' }],
  ['nowhere if unsigned', ['mx.unsigned.test'], { status: 'none' }],
  ['nowhere if the alias leads to an unsigned zone', ['leaving.signed.test'], { status: 'none' }],
  ['nowhere if there are none', ['none.signed.test'], { status: 'none' }],
  [
    'for now not if DNS fails',
    ['broken.signed.test', 'mx.signed.test'],
    { status: 'temporary', reason: 'DNS answered SERVFAIL' },
  ],
] as const)
  test(`check 35: TLSA records are found ${what}`, async () => {
    const resolver = new Resolver({ servers: [server.address] })
    assert.deepEqual(await findTlsa(resolver, bases, 25, {}), wanted)
  })

const finder = () =>
  new HopFinder({ resolver: new Resolver({ servers: [server.address] }), isAllowed: () => true })
const mx = 'mx.signed.test'
const protectedWays: [string, string, DaneNames | null][] = [
  ['to a signed host', 'to-mx.signed.test', { bases: [mx], names: [mx, 'to-mx.signed.test'] }],
  ['to the domain itself', mx, { bases: [mx], names: [mx, mx] }],
  [
    'to an alias of a signed host',
    'to-alias.signed.test',
    { bases: [mx, 'alias.signed.test'], names: ['alias.signed.test', 'to-alias.signed.test'] },
  ],
  [
    'to a signed alias of an unsigned host',
    'to-leaving.signed.test',
    { bases: ['leaving.signed.test'], names: ['leaving.signed.test', 'to-leaving.signed.test'] },
  ],
  [
    'by an alias of the domain',
    'renamed.signed.test',
    { bases: [mx], names: [mx, 'renamed.signed.test', 'to-mx.signed.test'] },
  ],
  ['to an unsigned host', 'to-plain.signed.test', null],
  ['from an unsigned domain', 'unsigned.test', null],
]

for (const [what, domain, dane] of protectedWays)
  test(`check 35: a way ${what} ${dane ? `has TLSA records at ${dane.bases.join(' or ')}` : 'has no DANE'}`, async () => {
    const hops = await finder().find(domain)
    assert.deepEqual(hops.status === 'ok' && hops.hosts.map((host) => host.dane), [dane])
  })

test('check 35: a host whose alias cannot be looked up is not tried without DANE', async () => {
  assert.equal((await finder().find('to-unknown.signed.test')).status, 'temporary')
})
