// Parses SPF records, and checks which errors make a whole record void.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSpfRecord, selectSpfRecords } from './record.ts'

const selected: [string, boolean][] = [
  ['v=spf1', true],
  ['V=SPF1 -all', true],
  ['v=spf10 -all', false],
  ['v=spf1\t-all', false],
  [' v=spf1 -all', false],
  ['v=spf1-all', false],
  ['', false],
]

for (const [text, isOne] of selected) {
  test(`check 53: ${JSON.stringify(text)} is ${isOne ? 'an' : 'not an'} SPF record`, () => {
    assert.deepEqual(selectSpfRecords(['other', text]), isOne ? [text] : [])
  })
}

const valid = [
  '',
  ' ',
  ' a  mx   -all  ',
  ' A MX:Example.COM/24//64 PTR Include:a.example EXISTS:%{i}.a.example',
  ' a//64 mx/0 a:a.example//128 a:%{d1r.-+,/_=}/31',
  ' ip4:192.0.2.1 ip4:0.0.0.0/0 ip6:::/0 ip6:2001:db8::1/128 ip6:::ffff:192.0.2.1',
  ' redirect=%{d} exp=a.example',
  ' x-y_z.1=anything/:%%%_%-%{S}',
  ' a:%%.%{h} a:a.xn--p1ai a:a.b-1.',
]

for (const terms of valid) {
  test(`check 53: the terms ${JSON.stringify(terms)} are valid`, () => {
    assert.equal(parseSpfRecord(`v=spf1${terms}`).status, 'ok')
  })
}

const invalidTerms = [
  ...['all:', 'all/8', '-', '+', '--all', '!all', 'constructor', 'tostring', '__proto__', 'aall', 'ip4'],
  ...['a:', 'a/', 'a/33', 'a/024', 'a//129', 'a/24/64', 'a///64', 'a/24//', 'mx:a.example/-1', 'a/1000000'],
  ...[
    'a:example',
    'a:a.123',
    'a:a.-b',
    'a:a.b-',
    'a:.',
    'a:a..',
    'ptr/24',
    'ptr:',
    'exists',
    'exists:',
    'include',
  ],
  ...['include:a.example/24', 'exists:a.example//64'],
  ...[
    'ip4:192.0.2',
    'ip4:192.0.2.01',
    'ip4:192.0.2.1/33',
    'ip4:2001:db8::',
    'ip4:192.0.2.1//24',
    'ip4:0x7f.1',
  ],
  ...['ip6:192.0.2.1', 'ip6:fe80::1%eth0', 'ip6:::/129', 'ip6:', 'ip6:2001:db8::1//64', 'ip4:192.0.2.1/'],
  ...['a:%{d', 'a:%d}', 'a:%{d0}', 'a:%{d00r}', 'a:%{x}', 'a:%{dr1}', 'a:%{d!}', 'a:%', 'a:%{}', 'a:%{ d}'],
  ...[
    'a:%{c}',
    'a:%{r}.a.example',
    'exists:%{t}',
    'exp=%{c}',
    'x=%{T}',
    'x=%',
    'exp=',
    'redirect=',
    'redirect=a',
  ],
  ...['exp=a.b exp=a.b', 'redirect=a.b REDIRECT=a.b', '1x=y', '=', 'a\tmx', 'a\u00a0mx', 'ä', 'a:\0.example'],
]

for (const term of invalidTerms) {
  test(`check 53: the term ${JSON.stringify(term)} makes a record void, also after -all`, () => {
    assert.equal(parseSpfRecord(`v=spf1 -all ${term}`).status, 'invalid')
  })
}

test('check 53: each mechanism is read with its result and parts', () => {
  const parsed = parseSpfRecord('v=spf1 ~a/24//64 ?ip4:192.0.2.0/25 -all redirect=a.example')
  assert.ok(parsed.status === 'ok')
  const { directives, redirect, explanation } = parsed.record
  assert.deepEqual(directives, [
    {
      result: 'softfail',
      mechanism: { name: 'a', target: null, prefixBits4: 24, prefixBits6: 64 },
      text: '~a/24//64',
    },
    {
      result: 'neutral',
      mechanism: { name: 'ip4', network: [192, 0, 2, 0], prefixBits: 25 },
      text: '?ip4:192.0.2.0/25',
    },
    { result: 'fail', mechanism: { name: 'all' }, text: '-all' },
  ])
  assert.deepEqual([redirect, explanation], [['a.example'], null])
})

test('check 53: a record longer than 8,192 characters is void, and a long term is cut when shown', () => {
  assert.equal(parseSpfRecord(`v=spf1${' a'.repeat(4093)}`).status, 'ok')
  assert.deepEqual(parseSpfRecord(`v=spf1${' a'.repeat(4094)}`), {
    status: 'invalid',
    reason: 'is longer than 8192 characters',
  })
  const long = parseSpfRecord(`v=spf1 x:${'y'.repeat(8000)}`)
  assert.ok(long.status === 'invalid' && long.reason.length < 200)
})
