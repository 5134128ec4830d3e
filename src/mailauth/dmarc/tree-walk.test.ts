// The questions of the tree walk, the policy that it finds, and the domain at which an organization begins.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { temporary, zoneLookup } from '../../../tests/support/dmarc-zone.ts'
import { recordLookups } from '../lookup.ts'
import { discoverPolicy, organizationalDomain, recordLookup, walkTree } from './tree-walk.ts'

const plain = 'v=DMARC1; p=none'
const suffix = 'v=DMARC1; p=none; psd=y'
const organization = 'v=DMARC1; p=none; psd=n'

type Row = [
  domain: string,
  dmarc: Record<string, string | string[]>,
  organizational: string,
  policyDomain: string | null,
]

const rows: Row[] = [
  // Without any record, the public suffix list decides.
  ['a.mail.example.com', {}, 'example.com', null],
  ['shop.example.co.uk', {}, 'example.co.uk', null],
  // The longest and the shortest of several organizations' records.
  ['a.mail.example.com', { 'mail.example.com': plain, 'example.com': plain }, 'example.com', 'example.com'],
  ['a.mail.example.com', { 'mail.example.com': plain }, 'mail.example.com', 'mail.example.com'],
  [
    'mail.example.com',
    { 'mail.example.com': plain, 'example.com': plain },
    'example.com',
    'mail.example.com',
  ],
  // Records that declare where an organization begins.
  [
    'a.mail.example.com',
    { 'mail.example.com': organization, 'example.com': plain },
    ...(['mail.example.com', 'mail.example.com'] as const),
  ],
  ['a.mail.example.com', { com: suffix }, 'example.com', 'com'],
  ['a.mail.example.com', { 'example.com': suffix, com: plain }, 'mail.example.com', 'example.com'],
  [
    'a.mail.example.com',
    { 'a.mail.example.com': plain, 'example.com': suffix },
    ...(['mail.example.com', 'a.mail.example.com'] as const),
  ],
  ['bank.example', { 'bank.example': suffix }, 'bank.example', 'bank.example'],
  // A suffix whose record does not declare it a suffix.
  ['shop.co.uk', { 'co.uk': plain }, 'shop.co.uk', 'co.uk'],
  ['shop.co.uk', { 'co.uk': plain, 'shop.co.uk': plain }, 'shop.co.uk', 'shop.co.uk'],
  ['a.shop.co.uk', { 'co.uk': plain, uk: plain }, 'shop.co.uk', 'co.uk'],
  ['co.uk', { 'co.uk': plain }, 'co.uk', 'co.uk'],
  ['me.github.io', { 'github.io': plain }, 'me.github.io', 'github.io'],
  ['me.github.io', { 'github.io': organization }, 'github.io', 'github.io'],
  // Several records count as none. A text that is no record does not count.
  ['example.com', { 'example.com': [plain, plain] }, 'example.com', null],
  ['example.com', { 'example.com': ['v=spf1 -all', plain, 'v=DMARC2'] }, 'example.com', 'example.com'],
  ['a.example.com', { 'a.example.com': [plain, suffix], 'example.com': plain }, 'example.com', 'example.com'],
  // Eight labels, and more than eight.
  ['1.2.3.4.5.6.example.com', { '2.3.4.5.6.example.com': plain }, ...twice('2.3.4.5.6.example.com')],
  ['0.1.2.3.4.5.6.example.com', { '1.2.3.4.5.6.example.com': plain }, 'example.com', null],
  ['0.1.2.3.4.5.6.example.com', { '3.4.5.6.example.com': plain }, ...twice('3.4.5.6.example.com')],
]

function twice(name: string): [string, string] {
  return [name, name]
}

for (const [domain, dmarc, expected, policyDomain] of rows) {
  test(`check 55: ${domain} with ${JSON.stringify(dmarc)} belongs to ${expected}`, async () => {
    const ask = recordLookup(zoneLookup({ dmarc }))
    const { found, failure } = await walkTree(ask, domain)
    assert.equal(failure, null)
    assert.equal(organizationalDomain(domain, found), expected)
    const discovery = await discoverPolicy(ask, domain)
    assert.equal(discovery.status === 'found' ? discovery.policyDomain : null, policyDomain)
  })
}

const questions: [domain: string, dmarc: Record<string, string>, asked: string[]][] = [
  ['example.com', {}, ['example.com', 'com']],
  ['example.com', { 'example.com': organization }, ['example.com']],
  ['a.example.com', { 'example.com': suffix }, ['a.example.com', 'example.com']],
  ['a.example.com', { 'example.com': temporary }, ['a.example.com', 'example.com']],
  [
    'a.b.c.d.e.f.g.h.i.j.mail.example.com',
    {},
    [
      ...['a.b.c.d.e.f.g.h.i.j.mail.example.com', 'g.h.i.j.mail.example.com', 'h.i.j.mail.example.com'],
      ...['i.j.mail.example.com', 'j.mail.example.com', 'mail.example.com', 'example.com', 'com'],
    ],
  ],
]

for (const [domain, dmarc, asked] of questions) {
  test(`check 55: a walk from ${domain} with ${JSON.stringify(dmarc)} asks ${asked.length} questions`, async () => {
    const { lookup, asked: recorded } = recordLookups(zoneLookup({ dmarc }))
    await walkTree(recordLookup(lookup), domain)
    assert.deepEqual(
      recorded(),
      asked.map((name) => `TXT _dmarc.${name}`),
    )
  })
}

test('a name too long for DNS with its prefix is not looked up', async () => {
  const { lookup, asked } = recordLookups(zoneLookup({ dmarc: {} }))
  const domain = `${'a.'.repeat(121)}example.com`
  await walkTree(recordLookup(lookup), domain)
  assert.equal(domain.length, 253)
  assert.equal(asked().length, 7)
})

test('check 55: at most eight questions find an organization at or above the domain, with its policy', async () => {
  const label = fc.constantFrom('a', 'b', 'co', 'uk', 'com', 'github', 'io')
  const domains = fc.array(label, { minLength: 1, maxLength: 12 }).map((labels) => labels.join('.'))
  const texts = fc.constantFrom(plain, suffix, organization, 'v=DMARC1', 'x', temporary)
  const property = fc.asyncProperty(
    domains,
    fc.array(texts, { maxLength: 12 }),
    async (domain, published) => {
      const labels = domain.split('.')
      const dmarc = Object.fromEntries(published.map((text, at) => [labels.slice(at).join('.'), text]))
      const { lookup, asked } = recordLookups(zoneLookup({ dmarc }))
      const discovery = await discoverPolicy(recordLookup(lookup), domain)
      assert.ok(asked().length <= 8)
      if (discovery.status !== 'found') return
      const { organization: found, policyDomain } = discovery
      assert.ok(`.${domain}`.endsWith(`.${policyDomain}`))
      if (found.status === 'known') assert.ok(`.${domain}`.endsWith(`.${found.domain}`))
    },
  )
  await fc.assert(property, { numRuns: 2_000 })
})
