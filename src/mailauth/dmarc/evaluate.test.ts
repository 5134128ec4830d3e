// DMARC as a table: the cases of the RFC's appendix with other names, policies, alignment, and the effect of faults.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { temporary, type Zone, zoneLookup } from '../../../tests/support/dmarc-zone.ts'
import type { AuthorDomains } from './author-domain.ts'
import { readAuthorDomains } from './author-domain.ts'
import { type CheckedDomains, type DmarcVerdict, evaluateDmarc, vouchedFor } from './evaluate.ts'

type DmarcFacts = CheckedDomains & { from: AuthorDomains }

const pass = (domain: string) => ({ result: 'pass' as const, domain })
const one = (domain: string): DmarcFacts => ({
  from: { domains: [domain], fault: null },
  spf: null,
  dkim: [],
})

type Row = [
  name: string,
  domain: string,
  dmarc: Zone['dmarc'],
  proved: Partial<Pick<DmarcFacts, 'spf' | 'dkim'>>,
  verdict: Partial<DmarcVerdict>,
]

const reject = { 'shop.test': 'v=DMARC1; p=reject' }
const strict = { 'shop.test': 'v=DMARC1; p=reject; adkim=s; aspf=s' }
const later = (domain: string) => ({ result: 'temperror' as const, domain })
const unknown = { result: 'temperror', alignedBy: [], policy: null, disposition: 'none' } as const
const nobody = { result: 'fail', alignedBy: [], policy: 'reject', disposition: 'reject' } as const

const rows: Row[] = [
  // RFC 9989 B.1: alignment.
  ['SPF, the same name', 'shop.test', strict, { spf: pass('shop.test') }, { alignedBy: ['spf'] }],
  ['SPF, below', 'shop.test', reject, { spf: pass('bounce.shop.test') }, { alignedBy: ['spf'] }],
  ['SPF, below, strict', 'shop.test', strict, { spf: pass('bounce.shop.test') }, nobody],
  ['SPF, elsewhere', 'news.shop.test', reject, { spf: pass('mailer.test') }, nobody],
  ['DKIM, the same name', 'shop.test', strict, { dkim: [pass('SHOP.test')] }, { alignedBy: ['dkim'] }],
  ['DKIM, above', 'news.shop.test', reject, { dkim: [pass('shop.test')] }, { alignedBy: ['dkim'] }],
  ['DKIM, above, strict', 'news.shop.test', strict, { dkim: [pass('shop.test')] }, nobody],
  ['DKIM, elsewhere', 'news.shop.test', reject, { dkim: [pass('mailer.test')] }, nobody],
  [
    ...(['DKIM, one of three', 'shop.test', reject] as const),
    { dkim: [pass('mailer.test'), { result: 'fail', domain: 'shop.test' }, pass('k1.shop.test')] },
    { alignedBy: ['dkim'] },
  ],
  [
    'both',
    'shop.test',
    reject,
    { spf: pass('shop.test'), dkim: [pass('shop.test')] },
    { alignedBy: ['dkim', 'spf'] },
  ],
  ['nothing passed', 'shop.test', reject, { spf: { result: 'softfail', domain: 'shop.test' } }, nobody],
  // RFC 9989 5.3.6: if DNS does not answer for the author's own identifiers, the message neither passes nor fails.
  ...(
    [
      ['SPF is not known now', { spf: later('bounce.shop.test') }, unknown],
      ['a key is not known now', { dkim: [later('shop.test')] }, unknown],
      ['a key is not known now, SPF passes', { spf: pass('shop.test'), dkim: [later('shop.test')] }, {}],
      ['a key of another is not known now', { dkim: [later('mailer.test')] }, nobody],
    ] as const
  ).map(([name, proved, verdict]): Row => [name, 'shop.test', reject, proved, verdict]),
  [
    ...(['a key below, strict, is not known now', 'shop.test', strict] as const),
    ...([{ dkim: [later('k1.shop.test')] }, nobody] as const),
  ],
  [
    'neighbours',
    'shop.test',
    reject,
    { dkim: [pass('notshop.test'), pass('test'), pass('shop.test.evil.test')] },
    nobody,
  ],
  [
    'a name that is none',
    'shop.test',
    reject,
    { dkim: [pass('shop.test\0'), pass('shop.test.'), pass('')] },
    nobody,
  ],
  [
    'a U-label',
    'xn--bcher-kva.test',
    { 'xn--bcher-kva.test': 'v=DMARC1; p=reject' },
    { dkim: [pass('Bücher.test')] },
    { alignedBy: ['dkim'] },
  ],
  // RFC 9989 B.4.1: records at the author's domain and at the signer's.
  [
    ...(['a signer with a record of its own', 'shop.test'] as const),
    { ...reject, 'sign.shop.test': 'v=DMARC1; p=none' },
    { dkim: [pass('sign.shop.test')] },
    { alignedBy: ['dkim'], organizationalDomain: 'shop.test' },
  ],
  // RFC 9989 B.4.2: a deep name.
  [
    ...([
      'a deep author',
      'a.b.c.d.e.f.g.h.i.j.k.shop.test',
      { ...reject, 'sign.shop.test': 'v=DMARC1; p=none' },
    ] as const),
    { spf: pass('shop.test'), dkim: [pass('sign.shop.test')] },
    { alignedBy: ['dkim', 'spf'], organizationalDomain: 'shop.test', policyDomain: 'shop.test' },
  ],
  // RFC 9989 B.4.3: a public suffix with a record.
  [
    ...(['a suffix above two banks', 'giant.bank.test'] as const),
    { 'bank.test': 'v=DMARC1; p=reject; psd=y', 'giant.bank.test': 'v=DMARC1; p=quarantine' },
    { spf: pass('mail.giant.bank.test'), dkim: [pass('mail.mega.bank.test')] },
    { alignedBy: ['spf'], organizationalDomain: 'giant.bank.test', policy: 'quarantine' },
  ],
  [
    ...(['the neighbour alone', 'giant.bank.test'] as const),
    { 'bank.test': 'v=DMARC1; p=none; sp=reject; psd=y' },
    { dkim: [pass('mail.mega.bank.test'), pass('bank.test')] },
    { ...nobody, policyDomain: 'bank.test', organizationalDomain: 'giant.bank.test' },
  ],
  // RFC 9989 11.8: a neighbour below a suffix that does not declare itself a suffix, and the suffix itself.
  [
    'a neighbour below co.uk',
    'shop.co.uk',
    { 'co.uk': 'v=DMARC1; p=reject' },
    { dkim: [pass('evil.co.uk')] },
    nobody,
  ],
  ['from a suffix', 'co.uk', { 'co.uk': 'v=DMARC1; p=reject' }, { dkim: [pass('evil.co.uk')] }, nobody],
  [
    ...(['a part that is an organization of its own', 'shop.test'] as const),
    { ...reject, 'lab.shop.test': 'v=DMARC1; p=none; psd=n' },
    { dkim: [pass('x.lab.shop.test')] },
    nobody,
  ],
]

for (const [name, domain, dmarc, proved, expected] of rows) {
  test(`check 55: DMARC is evaluated: ${name}`, async () => {
    const verdict = await evaluateDmarc(zoneLookup({ dmarc }), { ...one(domain), ...proved })
    const passing = { result: 'pass', disposition: 'none', domain } as const
    const wanted = { ...(expected.alignedBy?.length ? passing : {}), ...expected }
    assert.deepEqual(pick(verdict, wanted), wanted)
  })
}

function pick(verdict: DmarcVerdict, wanted: Partial<DmarcVerdict>): Partial<DmarcVerdict> {
  return Object.fromEntries(Object.keys(wanted).map((key) => [key, verdict[key as keyof DmarcVerdict]]))
}

const policies: [record: string, domain: string, policy: DmarcVerdict['policy']][] = [
  ['p=reject', 'shop.test', 'reject'],
  ['p=reject', 'there.shop.test', 'reject'],
  ['p=reject', 'gone.shop.test', 'reject'],
  ['p=none; sp=quarantine; np=reject', 'shop.test', 'none'],
  ['p=none; sp=quarantine; np=reject', 'there.shop.test', 'quarantine'],
  ['p=none; sp=quarantine; np=reject', 'gone.shop.test', 'reject'],
  ['p=reject; sp=none', 'gone.shop.test', 'none'],
  ['p=none; np=reject', 'there.shop.test', 'none'],
  ['p=none; np=reject', 'gone.shop.test', 'reject'],
  ['p=reject; t=y', 'shop.test', 'quarantine'],
  ['p=quarantine; t=y', 'shop.test', 'none'],
  ['p=none; t=y', 'shop.test', 'none'],
  ['p=none; sp=reject; t=y', 'there.shop.test', 'quarantine'],
  ['p=reject; pct=0', 'shop.test', 'reject'],
  ['rua=mailto:x@shop.test', 'shop.test', 'none'],
  ['p=reject; sp=strange; rua=mailto:x@shop.test', 'shop.test', 'none'],
]

for (const [record, domain, policy] of policies) {
  test(`the policy for ${domain} by ${record} is ${policy}`, async () => {
    const zone = { dmarc: { 'shop.test': `v=DMARC1; ${record}` }, existing: ['there.shop.test'] }
    const verdict = await evaluateDmarc(zoneLookup(zone), one(domain))
    assert.deepEqual([verdict.result, verdict.policy, verdict.disposition], ['fail', policy, policy])
    const isLessened = /t=y/.test(record) && !/p=none; t/.test(record)
    assert.equal(verdict.override, isLessened ? 'policy_test_mode' : null)
  })
}

const answers: [name: string, facts: DmarcFacts, dmarc: Zone['dmarc'], verdict: Partial<DmarcVerdict>][] = [
  [
    'no record',
    one('a.shop.co.uk'),
    {},
    { result: 'none', organizationalDomain: 'shop.co.uk', policy: null },
  ],
  [
    'two records',
    one('shop.test'),
    { 'shop.test': ['v=DMARC1; p=reject', 'v=DMARC1; p=none'] },
    { result: 'none' },
  ],
  [
    'a record of nothing',
    one('shop.test'),
    { 'shop.test': 'v=DMARC1; p=refuse' },
    { result: 'permerror', policy: null },
  ],
  [
    'no answer',
    one('shop.test'),
    { 'shop.test': temporary },
    { result: 'temperror', policy: null, disposition: 'none' },
  ],
  ['no answer above', one('a.shop.test'), { 'shop.test': temporary }, { result: 'temperror' }],
  [
    ...([
      'no answer above a record, the same name',
      { ...one('shop.test'), dkim: [pass('shop.test')] },
    ] as const),
    { ...reject, test: temporary },
    { result: 'pass', organizationalDomain: null },
  ],
  [
    ...([
      'no answer above a record, a name below',
      { ...one('shop.test'), dkim: [pass('a.shop.test')] },
    ] as const),
    { ...reject, test: temporary },
    { result: 'temperror', policy: null },
  ],
  [
    ...([
      'no answer above a record, a stranger',
      { ...one('shop.test'), dkim: [pass('evil.test')] },
    ] as const),
    { ...reject, test: temporary },
    { result: 'fail', disposition: 'reject' },
  ],
  [
    ...(['no answer for the signer', { ...one('shop.test'), dkim: [pass('a.shop.test')] }] as const),
    { ...reject, 'a.shop.test': temporary },
    { result: 'temperror' },
  ],
  [
    ...([
      'no answer for a signer, SPF aligned',
      { ...one('shop.test'), spf: pass('shop.test'), dkim: [pass('a.shop.test')] },
    ] as const),
    { ...reject, 'a.shop.test': temporary },
    { result: 'pass', alignedBy: ['spf'] },
  ],
  [
    ...([
      'a signature of its own whose key is not known now',
      { ...one('shop.test'), dkim: [{ result: 'temperror', domain: 'mail.shop.test' }] },
      reject,
    ] as const),
    { result: 'temperror', policy: null, disposition: 'none' },
  ],
  [
    ...([
      'an SPF of its own that is not known now',
      { ...one('shop.test'), spf: { result: 'temperror', domain: 'shop.test' } },
      reject,
    ] as const),
    { result: 'temperror', disposition: 'none' },
  ],
  [
    ...([
      'a signature of a stranger whose key is not known now',
      { ...one('shop.test'), dkim: [{ result: 'temperror', domain: 'other.test' }] },
      reject,
    ] as const),
    { result: 'fail', disposition: 'reject' },
  ],
]

test('check 55: mail that a trusted sealer vouches for still fails, without its policy being applied', async () => {
  const failing = await evaluateDmarc(zoneLookup({ dmarc: reject }), one('shop.test'))
  const expected = {
    ...({ result: 'fail', policy: 'reject' } as const),
    ...({ disposition: 'none', override: 'trusted_forwarder' } as const),
  }
  assert.deepEqual(pick(vouchedFor(failing), expected), expected)
  const passing = await evaluateDmarc(zoneLookup({ dmarc: reject }), {
    ...one('shop.test'),
    spf: pass('shop.test'),
  })
  assert.deepEqual(vouchedFor(passing), passing)
})

for (const [name, facts, dmarc, expected] of answers) {
  test(`check 55: ${name} is ${expected.result}`, async () => {
    const verdict = await evaluateDmarc(zoneLookup({ dmarc }), facts)
    assert.deepEqual(pick(verdict, expected), expected)
  })
}

test('a name whose existence is unknown now yields no verdict', async () => {
  const lookup = zoneLookup({
    dmarc: { 'shop.test': 'v=DMARC1; p=none; np=reject' },
    txt: { 'a.shop.test': [temporary] },
  })
  const verdict = await evaluateDmarc(lookup, one('a.shop.test'))
  assert.deepEqual([verdict.result, verdict.policy, verdict.disposition], ['temperror', null, 'none'])
  const proved = await evaluateDmarc(lookup, { ...one('a.shop.test'), spf: pass('a.shop.test') })
  assert.equal(proved.result, 'pass')
})

const spoofed: [name: string, header: string, result: string, disposition: string][] = [
  ['two From fields', 'From: a@evil.test\r\nFrom: ceo@bank.test', 'fail', 'reject'],
  ['two From fields of the attacker', 'From: a@evil.test\r\nFrom: b@evil.test', 'permerror', 'none'],
  ['two mailboxes', 'From: a@evil.test, ceo@bank.test', 'fail', 'reject'],
  ['NUL', 'From: ceo@bank.test\0@evil.test', 'fail', 'reject'],
  ['a comment', 'From: <ceo@bank.test(.evil.test)>', 'fail', 'reject'],
  ['an encoded word', `From: =?utf-8?B?${btoa('ceo@bank.test')}?=, a@evil.test`, 'fail', 'reject'],
  ['a route', 'From: <@bank.test:a@evil.test>', 'fail', 'reject'],
  ['a group', 'From: ceo: a@evil.test;', 'permerror', 'none'],
  ['no From', 'Sender: ceo@bank.test', 'permerror', 'none'],
  ['an address as the name', 'From: ceo@bank.test <a@evil.test>', 'permerror', 'none'],
]

for (const [name, header, result, disposition] of spoofed) {
  test(`check 55: ${name} never passes: ${result}, ${disposition}`, async () => {
    const dmarc = { 'bank.test': 'v=DMARC1; p=reject', 'evil.test': 'v=DMARC1; p=none' }
    const from = readAuthorDomains(Buffer.from(`${header}\r\n\r\n`))
    const facts = { ...one('x'), from, spf: pass('evil.test'), dkim: [pass('evil.test')] }
    const verdict = await evaluateDmarc(zoneLookup({ dmarc }), facts)
    assert.deepEqual([verdict.result, verdict.disposition], [result, disposition])
  })
}

test('check 55: a message with any number of identifiers and authors costs at most 58 questions', async () => {
  const dmarc = Object.fromEntries([1, 2, 3].map((n) => [`d${n}.test`, 'v=DMARC1; p=none; np=reject']))
  const deep = (n: number) => `1.2.3.4.5.6.7.8.9.a.d${n}.test`
  const from = { domains: [deep(1), deep(2), deep(3)], fault: 'several' }
  const dkim = Array.from({ length: 500 }, (_, at) => pass(`s${at}.x.y.z.d${(at % 3) + 1}.test`))
  const verdict = await evaluateDmarc(zoneLookup({ dmarc }), { ...one('x'), from, dkim })
  assert.ok(verdict.asked.length <= 58, `${verdict.asked.length}`)
  assert.notEqual(verdict.result, 'pass')
})

test('check 55: a pass needs an identifier that passed, within the author’s organization', async () => {
  const names = [
    'shop.test',
    'a.shop.test',
    'b.a.shop.test',
    'test',
    'evil.test',
    'co.uk',
    'x.co.uk',
    'y.co.uk',
  ]
  const records = [
    'v=DMARC1; p=reject',
    'v=DMARC1; p=none; psd=y',
    'v=DMARC1; psd=n; p=none; adkim=s',
    temporary,
  ]
  const identifiers = fc.record({
    result: fc.constantFrom('pass' as const, 'fail' as const, 'temperror' as const),
    domain: fc.constantFrom(...names),
  })
  const property = fc.asyncProperty(
    fc.constantFrom(...names),
    fc.dictionary(fc.constantFrom(...names), fc.constantFrom(...records)),
    fc.option(identifiers),
    fc.array(identifiers, { maxLength: 4 }),
    async (domain, dmarc, spf, dkim) => {
      const verdict = await evaluateDmarc(zoneLookup({ dmarc }), { ...one(domain), spf, dkim })
      assert.equal(verdict.result === 'pass', verdict.alignedBy.length > 0)
      if (verdict.result !== 'pass') return
      assert.equal(verdict.disposition, 'none')
      const top = verdict.organizationalDomain ?? domain
      const proving = [spf, ...dkim].filter((one) => one?.result === 'pass').map((one) => one!.domain)
      assert.ok(proving.some((name) => name === domain || `.${name}`.endsWith(`.${top}`)))
      assert.ok(!['test', 'co.uk'].includes(top) || domain === top || dmarc[top]?.includes('psd=n'))
    },
  )
  await fc.assert(property, { numRuns: 2_000 })
})

test('check 55: the policies of all authors are looked up before any identifier is', async () => {
  const dmarc = { 'many.test': 'v=DMARC1; p=none', 'bank.test': 'v=DMARC1; p=reject' }
  const from = { domains: ['a.b.c.d.e.f.g.many.test', 'bank.test'], fault: 'several' }
  const dkim = [pass('s1.x.y.z.many.test'), pass('s2.x.y.z.many.test'), later('s3.x.y.z.many.test')]
  const { asked, ...verdict } = await evaluateDmarc(zoneLookup({ dmarc }), { ...one('x'), from, dkim })
  assert.deepEqual([verdict.domain, verdict.disposition], ['bank.test', 'reject'])
  const sought = asked.findIndex((question) => question.includes('.x.y.z.'))
  assert.ok(asked.indexOf('TXT _dmarc.bank.test') < sought, asked.join(' '))
})
