// SPF macros: the RFC's own examples, transformations, and the effect of a macro bomb.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inCpuTime } from '../../../tests/support/cpu-time.ts'
import { expandName, expandText, type MacroValues, parseDomainSpec, parseExplanation } from './macro.ts'

const values: MacroValues = {
  s: 'strong-bad@email.example.com',
  l: 'strong-bad',
  o: 'email.example.com',
  d: 'email.example.com',
  i: '192.0.2.3',
  p: 'mx.example.org',
  v: 'in-addr',
  h: 'mail.example.org',
  c: '192.0.2.3',
  r: 'mx.example.net',
  t: '1795251907',
}

// RFC 7208 7.4, and other forms that its grammar allows.
const texts: [string, string][] = [
  ['%{s}', 'strong-bad@email.example.com'],
  ['%{o}', 'email.example.com'],
  ['%{d4}', 'email.example.com'],
  ['%{d3}', 'email.example.com'],
  ['%{d2}', 'example.com'],
  ['%{d1}', 'com'],
  ['%{dr}', 'com.example.email'],
  ['%{d2r}', 'example.email'],
  ['%{l}', 'strong-bad'],
  ['%{l-}', 'strong.bad'],
  ['%{lr}', 'strong-bad'],
  ['%{lr-}', 'bad.strong'],
  ['%{l1r-}', 'strong'],
  ['%{d255r}', 'com.example.email'],
  [`%{d${'9'.repeat(400)}R}`, 'com.example.email'],
  ['%{S}', 'strong-bad%40email.example.com'],
  ['%% %_ %- %{c} %{r} %{t} %{h1}', '%   %20 192.0.2.3 mx.example.net 1795251907 org'],
]

for (const [text, expanded] of texts) {
  test(`check 53: ${text.slice(0, 40)} expands to ${expanded}`, () => {
    assert.equal(expandText(parseExplanation(text)!, values, 400), expanded)
  })
}

test('check 53: only the grammar’s seven delimiters split a macro', () => {
  for (const text of ['%{s1-@}', '%{S1r@}', '%{d;}', '%{d1.2}']) assert.equal(parseExplanation(text), null)
  const odd = { ...values, l: 'a.b-c+d,e/f_g=h' }
  assert.equal(expandText(parseExplanation('%{lr.-+,/_=}')!, odd, 400), 'h.g.f.e.d.c.b.a')
})

test('check 53: a sender’s text is URL-escaped, and never expanded again', () => {
  const odd = { ...values, l: "a%{d}!*'()&é\u{1f600}~", s: '%%' }
  assert.equal(
    expandText(parseExplanation('%{L} %{l}')!, odd, 400),
    `a%25%7Bd%7D%21%2A%27%28%29%26%C3%A9%F0%9F%98%80~ ${odd.l}`,
  )
})

const names: [string, string | null][] = [
  ['%{ir}.%{v}._spf.%{d2}', '3.2.0.192.in-addr._spf.example.com'],
  ['%{lr-}.lp.%{ir}.%{v}._spf.%{d2}', 'bad.strong.lp.3.2.0.192.in-addr._spf.example.com'],
  ['%{d2}.trusted-domains.example.net', 'example.com.trusted-domains.example.net'],
  ['Example.COM.', 'example.com'],
  ['a..example.com', null],
  [`${'a'.repeat(64)}.example.com`, null],
  ['%{d}.', null],
  [`${'%{d}.'.repeat(20)}example.com`, `com.${'email.example.com.'.repeat(13)}example.com`],
  [`${'a'.repeat(300)}%{d}`, 'example.com'],
  [`%{d}.a${'b'.repeat(300)}`, null],
  [`${'a'.repeat(300)}.%{d}`, 'email.example.com'],
]

for (const [text, name] of names) {
  test(`check 53: the name ${text.slice(0, 40)} is ${name?.slice(0, 60)}`, () => {
    const pieces = parseDomainSpec(text)
    assert.equal(pieces && expandName(pieces, values), name)
  })
}

test('check 53: an expanded name holds only printable ASCII, whatever a sender writes', () => {
  for (const l of ['a\r\nb', 'a\0b', 'é', '\u007f', 'a\u0085'])
    assert.equal(expandName(parseDomainSpec('%{l}.example.com')!, { ...values, l }), null)
})

test('check 53: thousands of macros cost as little as a few, and their text is bounded', () => {
  const bomb = parseDomainSpec(`${'%{s255r.-+,/_=}'.repeat(4000)}%{d}`)!
  const long = { ...values, s: `${'a.'.repeat(128)}a@b.example` }
  inCpuTime(2_000, () => {
    for (let count = 0; count < 1000; count++) assert.ok(expandName(bomb, long)!.length <= 253)
    assert.equal(expandText(bomb, long, 400).length, 400)
  })
})
