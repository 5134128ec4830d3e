// Tests which names can be registered, and the one form of each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainToUnicode } from 'node:url'
import fc from 'fast-check'
import { normalizeDomain, trimDomain } from './domain-name.ts'

const long = (length: number) =>
  `${'a'.repeat(63)}.`
    .repeat(4)
    .slice(0, length - 4)
    .replace(/\.$/, 'a')
    .concat('.com')

const names: [given: string, name: string][] = [
  ['Example.COM', 'example.com'],
  [' \t mail.Example.com.\r\n', 'mail.example.com'],
  ['münchen.de', 'xn--mnchen-3ya.de'],
  ['MÜNCHEN.de', 'xn--mnchen-3ya.de'],
  ['XN--MNCHEN-3ya.de', 'xn--mnchen-3ya.de'],
  ['mu\u0308nchen.de', 'xn--mnchen-3ya.de'],
  ['faß.de', 'xn--fa-hia.de'],
  ['ｅｘａｍｐｌｅ。com', 'example.com'],
  ['例え.テスト', 'xn--r8jz45g.xn--zckzah'],
  ['пример.рф', 'xn--e1afmkfd.xn--p1ai'],
  ['l·l.cat', 'xn--ll-0ea.cat'],
  ['क्‍ष.com', 'xn--11b2ezcw70k.com'],
  ['foo.github.io', 'foo.github.io'],
  ['www.ck', 'www.ck'],
  ['a.b.c.d.example.co.uk', 'a.b.c.d.example.co.uk'],
  ['1.example.com', '1.example.com'],
  ['example.test', 'example.test'],
  [long(253), long(253)],
  [`${long(253)}.`, long(253)],
]

for (const [given, name] of names) {
  test(`check 56: ${JSON.stringify(given).slice(0, 60)} is ${name.slice(0, 40)}`, () => {
    assert.deepEqual(normalizeDomain(trimDomain(given)), { status: 'ok', name })
  })
}

const refused = {
  'an empty label': ['', '.', 'a..b', '.example.com', 'example.com..', 'example..com'],
  'bad LDH': [
    'ex_ample.com',
    '-a.com',
    'a-.com',
    'a b.com',
    '*.example.com',
    '_dmarc.example.com',
    'a.com/',
    'a@b.com',
  ],
  'too long': [long(254), `${'a'.repeat(64)}.com`, `${'ü'.repeat(60)}.com`, 'x'.repeat(100_000)],
  'an IP literal': [
    '192.0.2.1',
    '[192.0.2.1]',
    '::1',
    '[2001:db8::1]',
    '0x7f.1',
    '2130706433',
    'example.123',
    '1.2.3.4.',
  ],
  'a single label': ['localhost', 'com', 'xn--p1ai', 'рф'],
  'a public suffix': ['co.uk', 'github.io', 'foo.ck', 'CO.UK.', 'xn--55qx5d.cn', '公司.cn'],
  'not IDNA 2008': [
    '☃.net',
    'i❤.ws',
    'xn--n3h.net',
    'a·b.cat',
    'ab--cd.com',
    '1ا.com',
    '\u0301a.com',
    'a\u200db.com',
  ],
  'no A-label': ['xn--a.com', 'xn--zz.com', 'xn--.com', 'xn--mnchen-3yA\u0000.de', 'xn--exmple-4tä.com'],
  'a URL': ['http://example.com', 'example.com:25', 'example.com?x', 'user:x@example.com', 'example%2ecom'],
}

for (const [what, given] of Object.entries(refused)) {
  test(`check 56: ${what} is refused`, () => {
    for (const text of given)
      assert.equal(normalizeDomain(trimDomain(text)).status, 'refused', text.slice(0, 60))
  })
}

test('surrounding white space and one final dot are removed', () => {
  assert.equal(trimDomain(' \u00a0a.example..\n'), 'a.example.')
})

test('check 56: an accepted name has one form, which is accepted unchanged', () => {
  const label = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.stringMatching(/^[a-zA-Z0-9-]{1,63}$/),
    fc.stringMatching(/^xn--[a-z0-9-]{1,30}$/),
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc
      .tuple(fc.array(label, { minLength: 1, maxLength: 5 }), fc.constantFrom('com', 'co.uk', 'рф', ''))
      .map(([labels, end]) => [...labels, end].join('.')),
  )
  fc.assert(
    fc.property(text, (given) => {
      const normalized = normalizeDomain(given)
      if (normalized.status === 'refused') return
      const { name } = normalized
      assert.ok(name.length <= 253)
      assert.match(name, /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/)
      for (const again of [name, name.toUpperCase(), domainToUnicode(name)])
        assert.deepEqual(normalizeDomain(again), normalized, again)
    }),
    { numRuns: 2_000 },
  )
})
