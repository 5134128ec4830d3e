// Parses Authentication-Results as in RFC 8601's examples and as providers write them, and arbitrary text.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseAuthResults } from './parse-auth-results.ts'

const fields: [string, string, Record<string, Record<string, string>>][] = [
  ['example.org 1; none', 'example.org', {}],
  ['example.com; none', 'example.com', {}],
  [
    'example.com;\r\n          spf=pass smtp.mailfrom=example.net',
    'example.com',
    { 'spf=pass': { 'smtp.mailfrom': 'example.net' } },
  ],
  [
    'example.com; auth=pass (cram-md5) smtp.auth=sender@example.net; spf=pass smtp.mailfrom=example.net',
    'example.com',
    { 'auth=pass': { 'smtp.auth': 'sender@example.net' }, 'spf=pass': { 'smtp.mailfrom': 'example.net' } },
  ],
  [
    'example.com; dkim=pass reason="good; signature" header.i=@mail-router.example.net; dkim=fail reason="bad signature" header.i=@newyork.example.com',
    'example.com',
    {
      'dkim=pass': { reason: 'good; signature', 'header.i': '@mail-router.example.net' },
      'dkim=fail': { reason: 'bad signature', 'header.i': '@newyork.example.com' },
    },
  ],
  [
    "foo.example.net (foobar) 1 (baz);\r\n dkim (Because I like it) / 1 (One yay) = (wait for it) fail\r\n policy (A dot can go here) . (like that) expired\r\n (this surprised me) = (as I wasn't expecting it) 1362471462",
    'foo.example.net',
    { 'dkim=fail': { 'policy.expired': '1362471462' } },
  ],
  [
    'mx.google.com;\r\n dkim=pass header.i=@d1.example header.s=sel header.b="ab/C+d=";\r\n spf=pass (google.com: domain of a@d1.example designates 192.0.2.1 as permitted sender) smtp.mailfrom="a b"@d1.example;\r\n dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=d1.example',
    'mx.google.com',
    {
      'dkim=pass': { 'header.i': '@d1.example', 'header.s': 'sel', 'header.b': 'ab/C+d=' },
      'spf=pass': { 'smtp.mailfrom': 'a b@d1.example' },
      'dmarc=pass': { 'header.from': 'd1.example' },
    },
  ],
  [
    'mx.microsoft.com 1; spf=pass (sender ip is 192.0.2.1) smtp.rcpttodomain=a.example smtp.mailfrom=b.example; dmarc=pass (p=none sp=none pct=100) action=none header.from=b.example; arc=none',
    'mx.microsoft.com',
    {
      'spf=pass': { 'smtp.rcpttodomain': 'a.example', 'smtp.mailfrom': 'b.example' },
      'dmarc=pass': { action: 'none', 'header.from': 'b.example' },
      'arc=none': {},
    },
  ],
  ['[192.0.2.1]; SPF=PASS', '[192.0.2.1]', { 'spf=pass': {} }],
  ['"a host"; x=y', 'a host', { 'x=y': {} }],
  ['a.example; ; =; spf; spf=; =pass; .a=b; ok=yes', 'a.example', { '.a=b': {}, 'ok=yes': {} }],
  ['a.example; dkim=pass header.d=one header.d=two', 'a.example', { 'dkim=pass': { 'header.d': 'one' } }],
  ['a.example; dkim=pass (unclosed header.d=one', 'a.example', { 'dkim=pass': {} }],
  ['a.example; dkim="pa\\ss" header.d="unclosed', 'a.example', { 'dkim=pass': { 'header.d': 'unclosed' } }],
]

test(`${fields.length} fields are read`, () => {
  for (const [text, authservId, wanted] of fields) {
    const found = parseAuthResults(text)
    const results = found?.results.map(({ method, result, properties }) => [
      `${method}=${result}`,
      Object.fromEntries(properties),
    ])
    assert.deepEqual([found?.authservId, Object.fromEntries(results ?? [])], [authservId, wanted], text)
  }
})

test('a field without a server’s name is refused', () => {
  for (const text of [
    '',
    ' ',
    '(a)',
    ';spf=pass',
    'spf=pass smtp.mailfrom=a',
    '""; spf=pass',
    'x'.repeat(20_000),
  ])
    assert.equal(parseAuthResults(text), null, text.slice(0, 40))
})

test('a comment or a quote never yields a result', () => {
  const text = 'a.example; (dmarc=pass) x="; dmarc=pass" (\\) ; dmarc=pass (;dmarc=pass) ;) "; dmarc=pass'
  assert.deepEqual(
    parseAuthResults(text)?.results.map(({ method }) => method),
    ['x'],
  )
})

test('a field written by RFC 8601 reads back as it was meant', () => {
  const word = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,8}$/)
  const space = fc.constantFrom('', ' ', '\r\n\t', ' (c (d) \\) ;) ', '\t()')
  const value = fc.oneof(word, fc.stringMatching(/^[ -~]{1,20}$/))
  const property = fc.property(
    fc.array(fc.tuple(word, word, value, space), { minLength: 1, maxLength: 10 }),
    (parts) => {
      const text = parts.map(([method, name, one, gap]) => {
        const quoted = `"${one.replace(/["\\]/g, '\\$&')}"`
        return `;${gap}${method}${gap}=${gap}pass header${gap}.${gap}${name}${gap}=${gap}${quoted}`
      })
      const found = parseAuthResults(`a.example${text.join('')}`)!.results
      assert.deepEqual(
        found.map(({ method, properties }) => [method, ...properties]),
        parts.map(([method, name, one]) => [method, [`header.${name}`, one]]),
      )
    },
  )
  fc.assert(property, { numRuns: 300 })
})
