// Tests the forms that an address may have or not, and which spellings are one address.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWrittenAsEmail, parseDomain, parseEmail, readEmail, sameAddressKey } from './address.ts'

const accepted: [given: string, email: string, localPart: string, domain: string][] = [
  ['Jane.Doe@Example.COM', 'Jane.Doe@example.com', 'Jane.Doe', 'example.com'],
  ['jörg@BÜCHER.example', 'jörg@xn--bcher-kva.example', 'jörg', 'xn--bcher-kva.example'],
  ['a@XN--BCHER-KVA.example', 'a@xn--bcher-kva.example', 'a', 'xn--bcher-kva.example'],
  ['a@bücher。example', 'a@xn--bcher-kva.example', 'a', 'xn--bcher-kva.example'],
  ['"john"@x.example', 'john@x.example', 'john', 'x.example'],
  ['"john doe"@x.example', '"john doe"@x.example', 'john doe', 'x.example'],
  ['"a\\"b\\\\c"@x.example', '"a\\"b\\\\c"@x.example', 'a"b\\c', 'x.example'],
  ['"a@evil.example x"@good.example', '"a@evil.example x"@good.example', 'a@evil.example x', 'good.example'],
  ['""@x.example', '""@x.example', '', 'x.example'],
  ['user+tag@localhost', 'user+tag@localhost', 'user+tag', 'localhost'],
  [
    `${'a'.repeat(64)}@${'a.'.repeat(91)}example`,
    `${'a'.repeat(64)}@${'a.'.repeat(91)}example`,
    'a'.repeat(64),
    `${'a.'.repeat(91)}example`,
  ],
  [`${'a'.repeat(64)}@x.example`, `${'a'.repeat(64)}@x.example`, 'a'.repeat(64), 'x.example'],
]

for (const [given, email, localPart, domain] of accepted) {
  test(`check 41: ${given} is parsed`, () => {
    assert.deepEqual(parseEmail(given), { email, localPart, domain })
    assert.deepEqual(parseEmail(email), { email, localPart, domain })
  })
}

const refused = [
  '',
  '@',
  'a',
  'a@',
  '@x.example',
  ' a@x.example',
  'a@x.example ',
  'a b@x.example',
  'a..b@x.example',
  '.a@x.example',
  'a.@x.example',
  'a@x.example.',
  'a@x..example',
  'a@-x.example',
  'a@x_y.example',
  'a@[127.0.0.1]',
  'a@127.0.0.1',
  'a@127.1',
  'a@0x7f.0x1',
  'a@１２７.0.0.1',
  'a@ü.example/x',
  'a@ü.example%00',
  '<a@x.example>',
  'Jane <a@x.example>',
  'a@x.example (comment)',
  'a(comment)@x.example',
  'group: a@x.example;',
  'a@x.example, b@x.example',
  '@relay.example:a@x.example',
  '"a"b"@x.example',
  '"a\\"@x.example',
  '"a".b@x.example',
  'a"b@x.example',
  'a\r\n@x.example',
  '"a\r\nb"@x.example',
  '"a\u0000b"@x.example',
  'a\u0000@x.example',
  'a\u0085@x.example',
  'a\ud800@x.example',
  'a\u202e@x.example',
  'a\u00a0b@x.example',
  'a\u200bb@x.example',
  '\ufeff@x.example',
  'a@-ü.example',
  'a@ü-.example',
  'a@ü-。example',
  `${'a'.repeat(65)}@x.example`,
  `${'ü'.repeat(33)}@x.example`,
  `"${'\\a'.repeat(32)}"@x.example`,
  `a@${'a'.repeat(64)}.example`,
  `${'a'.repeat(64)}@${'a.'.repeat(92)}exampl`,
  `a@${'a.'.repeat(127)}example`,
  'a'.repeat(1_000_000),
]

for (const given of refused) {
  test(`check 41: ${JSON.stringify(given.slice(0, 60))} is refused`, () =>
    assert.equal(parseEmail(given), null))
}

test('check 79: overlong addresses and IP hosts still count as addresses in syntax, malformed ones do not', () => {
  const written = [...accepted.map(([given]) => given), `${'a'.repeat(65)}@${'b'.repeat(255)}`, 'a@1.2.3.4']
  for (const given of written) assert.ok(isWrittenAsEmail(given), given)
  const others = ['', '@', 'a', 'a@', '@x.example', 'a b@x.example', 'a@x..example', 'a@x.example.', 'a@b c']
  const more = [
    'a@[127.0.0.1]',
    'Jane <a@x.example>',
    'a@x.example (comment)',
    'a..b@x.example',
    'a@x_y.example',
  ]
  for (const given of [...others, ...more]) assert.ok(!isWrittenAsEmail(given), given)
})

test('check 46: all spellings of one address share one key', () => {
  const same = ['Jörg@BÜCHER.example', 'jo\u0308rg@xn--bcher-kva.example', '"JÖRG"@bücher.EXAMPLE']
  assert.equal(new Set(same.map(sameAddressKey)).size, 1)
  assert.notEqual(sameAddressKey('a+x@b.example'), sameAddressKey('a@b.example'))
  assert.equal(sameAddressKey('  Not An Address '), 'not an address')
})

test('check 56: domains are host names in A-labels', () => {
  assert.equal(parseDomain('Faß.example'), 'xn--fa-hia.example')
  for (const given of ['', '.', 'a..b', 'a.', '1.2.3.4', 'a b', 'a/b', 'a@b', 'a\u0000b', 'ü'.repeat(64)]) {
    assert.equal(parseDomain(given), null, JSON.stringify(given))
  }
})

test('a remembered address equals its first reading, after any number of others', () => {
  const read = () => [readEmail('Ada@Far.test'), readEmail('no address')]
  const expected = [{ ...parseEmail('Ada@Far.test'), key: 'ada@far.test' }, null]
  assert.deepEqual([read(), read()], [expected, expected])
  for (let i = 0; i < 2_000; i++) assert.equal(readEmail(`u${i}@far.test`)?.key, `u${i}@far.test`)
  assert.deepEqual(read(), expected)
  assert.equal(readEmail(`${'a'.repeat(400)}@far.test`), null)
})
