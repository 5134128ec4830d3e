// The exact text of Authentication-Results and Received-SPF, and how the grammar and other parsers read them back.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { domainToASCII } from 'node:url'
import fc from 'fast-check'
import {
  authenticationResults,
  type HeaderCharset,
  type MethodResult,
  type ReceivedSpf,
  receivedSpf,
} from './result-fields.ts'

const ours = 'mx.b.example'

test('Authentication-Results shows all methods, exactly as expected', () => {
  const results: MethodResult[] = [
    {
      method: 'spf',
      result: 'pass',
      reason: '192.0.2.1 matches ip4:192.0.2.0/24 of a.example',
      properties: [['smtp', 'mailfrom', 'ann@a.example']],
    },
    {
      method: 'dkim',
      result: 'pass',
      properties: [
        ['header', 'd', 'a.example'],
        ['header', 's', 's1'],
        ['header', 'b', 'ab/+cd=='],
      ],
    },
    {
      method: 'dkim',
      result: 'fail',
      reason: 'the "body"\r\nwas \\ changed',
      properties: [['header', 'd', 'b.example']],
    },
    { method: 'dmarc', result: 'pass', properties: [['header', 'from', 'a.example']] },
    { method: 'arc', result: 'none', reason: null, properties: [] },
    { method: 'iprev', result: 'pass', properties: [['policy', 'iprev', '2001:db8::1']] },
  ]
  assert.equal(
    authenticationResults(ours, results, 'ascii'),
    [
      'Authentication-Results: mx.b.example;',
      ' spf=pass reason="192.0.2.1 matches ip4:192.0.2.0/24 of a.example"',
      ' smtp.mailfrom=ann@a.example;',
      ' dkim=pass header.d=a.example header.s=s1 header.b="ab/+cd==";',
      ' dkim=fail reason="the \\"body\\" was \\\\ changed" header.d=b.example;',
      ' dmarc=pass header.from=a.example;',
      ' arc=none;',
      ' iprev=pass policy.iprev="2001:db8::1"',
      '',
    ].join('\r\n'),
  )
  assert.equal(authenticationResults(ours, [], 'ascii'), 'Authentication-Results: mx.b.example; none\r\n')
})

const values: [string, HeaderCharset, string | null][] = [
  ['a.example', 'ascii', 'a.example'],
  ['"a b"@a.example', 'ascii', '"\\"a b\\"@a.example"'],
  ['', 'ascii', '""'],
  ['a;b', 'ascii', '"a;b"'],
  ['a(b', 'ascii', '"a(b"'],
  ['a\r\nX: y', 'utf8', null],
  ['a\tb', 'ascii', null],
  ['a\0', 'ascii', null],
  ['a\u0085b', 'utf8', null],
  ['a\u2028b', 'utf8', null],
  ['a\u202eb', 'utf8', null],
  ['\ud800', 'utf8', null],
  ['é@a.example', 'ascii', null],
  ['é@a.example', 'utf8', '"é@a.example"'],
  ['ann@bücher.example', 'ascii', 'ann@xn--bcher-kva.example'],
  ['bücher.example', 'ascii', 'xn--bcher-kva.example'],
  ['bücher.example', 'utf8', '"bücher.example"'],
  ['x'.repeat(320), 'ascii', 'x'.repeat(320)],
  ['x'.repeat(321), 'ascii', null],
]

for (const [value, charset, written] of values) {
  test(`the value ${JSON.stringify(value).slice(0, 40)} in ${charset} is ${written ? 'written' : 'left out'}`, () => {
    const one: MethodResult = { method: 'spf', result: 'pass', properties: [['smtp', 'helo', value]] }
    const field = authenticationResults(ours, [one], charset)
    const property = written === null ? '' : ` smtp.helo=${written}`
    const unfolded = field.replaceAll('\r\n ', ' ')
    assert.equal(unfolded, `Authentication-Results: ${ours}; spf=pass${property}\r\n`)
  })
}

const verdict: ReceivedSpf = {
  result: 'pass',
  reason: '192.0.2.1 matches ip4:192.0.2.0/24 of a.example (a)',
  clientIp: '192.0.2.1',
  envelopeFrom: 'ann@a.example',
  helo: 'mail.a.example',
  receiver: ours,
  identity: 'mailfrom',
  mechanism: 'ip4:192.0.2.0/24',
}

test('Received-SPF is written exactly as expected: a match, none, and an error', () => {
  const lines = (spf: Partial<ReceivedSpf>) =>
    receivedSpf({ ...verdict, ...spf }, 'ascii').replaceAll('\r\n ', ' ')
  const rest = 'helo=mail.a.example; receiver=mx.b.example; identity=mailfrom'
  const start = 'client-ip=192.0.2.1; envelope-from="ann@a.example";'
  assert.equal(
    lines({}),
    `Received-SPF: pass (192.0.2.1 matches ip4:192.0.2.0/24 of a.example \\(a\\)) ${start} ${rest}; mechanism="ip4:192.0.2.0/24"\r\n`,
  )
  assert.equal(
    lines({ result: 'neutral', reason: 'none', mechanism: null }),
    `Received-SPF: neutral (none) ${start} ${rest}; mechanism=default\r\n`,
  )
  assert.equal(
    lines({ result: 'permerror', reason: 'a "b"', mechanism: null }),
    `Received-SPF: permerror ${start} ${rest}; problem="a \\"b\\""\r\n`,
  )
  assert.ok(!lines({ result: 'none', helo: 'a\r\nX: y' }).includes('helo'))
})

test('a name that is not a keyword throws as a bug', () => {
  const one: MethodResult = { method: 'spf', result: 'pass', properties: [] }
  for (const method of ['', 'a b', 'spf;', 'a.b'])
    assert.throws(() => authenticationResults(ours, [{ ...one, method }], 'ascii'), { name: 'Error' })
  assert.throws(() => authenticationResults('a b', [one], 'ascii'), { name: 'Error' })
})

test('at most 24 results with 8 properties are written', () => {
  const properties = Array.from({ length: 100 }, () => ['header', 'd', 'a.example'] as const)
  const results = Array.from(
    { length: 1000 },
    (): MethodResult => ({ method: 'dkim', result: 'fail', properties }),
  )
  const field = authenticationResults(ours, results, 'ascii')
  assert.deepEqual([field.split('dkim=').length - 1, field.split('header.d=').length - 1], [24, 24 * 8])
})

// Hostile content: every sign that has a meaning in a header, in any order.
const signs = [
  ...[
    '\r\n',
    '\r',
    '\n',
    '\0',
    '\t',
    ' ',
    '  ',
    '"',
    '\\',
    '(',
    ')',
    ';',
    '=',
    ',',
    ':',
    '<',
    '>',
    '@',
    '.',
    '/',
  ],
  ...[
    '=?utf-8?q?a?=',
    'a',
    'a.example',
    'ann@a.example',
    'é',
    '漢',
    '\u0085',
    '\u2028',
    '\ud800',
    '\x7f',
    '\x1b',
  ],
  ...['header.d=x', 'reason=', 'spf=pass', 'none', 'X-Evil: 1', '-'.repeat(90), '[', ']', '?', "'", '%'],
]
const written = fc.oneof(
  fc.array(fc.constantFrom(...signs), { maxLength: 12 }).map((all) => all.join('')),
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.constantFrom('a.example', 'ann@a.example', '192.0.2.1'),
)
const property = fc.tuple(
  fc.constantFrom('smtp', 'header', 'policy'),
  fc.constantFrom('d', 'mailfrom', 'remote-ip'),
  written,
)
const results = fc.array(
  fc.record({
    method: fc.constantFrom('spf', 'dkim', 'dmarc', 'arc', 'iprev'),
    result: fc.constantFrom('pass', 'fail', 'none', 'temperror') as fc.Arbitrary<MethodResult['result']>,
    reason: fc.option(written),
    properties: fc.array(property, { maxLength: 3 }),
  }),
  { maxLength: 4 },
)
const charsets = fc.constantFrom<HeaderCharset>('ascii', 'utf8')

/** Checks that this is one field: lines of at most 998 octets, none blank, and only characters that it may contain. */
function assertIsOneField(field: string, charset: HeaderCharset): void {
  assert.match(field, /^[A-Za-z-]+:[^\r\n]*\S[^\r\n]*\r\n(?: [^\r\n]*\S[^\r\n]*\r\n)*$/)
  assert.doesNotMatch(field.replaceAll('\r\n', ''), charset === 'ascii' ? /[^\x20-\x7e]/ : /[\p{Cc}\p{Cs}]/u)
  for (const line of field.split('\r\n')) {
    assert.ok(Buffer.byteLength(line) <= 998)
    assert.ok(line.length <= 78 || !/\S +\S/.test(line.slice(1).replace(/"(?:[^"\\]|\\.)*"/g, 'x')), line)
  }
}

const grammar = {
  method: /; ([a-z]+)=([a-z]+)/y,
  reason: / reason="((?:[^"\\]|\\["\\])*)"/y,
  property:
    / (smtp|header|policy)\.([a-z-]+)=(?:"((?:[^"\\]|\\["\\])*)"|((?:[\w!#$%&'*+/=?^`{|}~.-]+@)?[\w!#$%&'*+^`{|}~.-]+))(?=[ ;]|$)/y,
}

/** Parses a field strictly by the part of RFC 8601 2.2 that we write. Fails on anything else. */
function readStrictly(field: string): MethodResult[] {
  const text = field.trimEnd().replaceAll('\r\n ', ' ')
  let at = `Authentication-Results: ${ours}`.length
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match) at = pattern.lastIndex
    return match
  }
  const plain = (quoted: string) => quoted.replace(/\\(.)/g, '$1')
  const found: MethodResult[] = []
  for (let method = take(grammar.method); method; method = take(grammar.method)) {
    const reason = take(grammar.reason)?.[1]
    const properties: [string, string, string][] = []
    for (let one = take(grammar.property); one; one = take(grammar.property))
      properties.push([one[1]!, one[2]!, one[4] ?? plain(one[3]!)])
    const result = method[2] as MethodResult['result']
    found.push({
      method: method[1]!,
      result,
      reason: reason === undefined ? null : plain(reason),
      properties,
    })
  }
  assert.ok(at === text.length || (found.length === 0 && text.slice(at) === '; none'), text.slice(at))
  return found
}

test('any findings are written as one field that follows the grammar', () => {
  fc.assert(
    fc.property(results, charsets, (given, charset) => {
      const field = authenticationResults(ours, given, charset)
      assertIsOneField(field, charset)
      const read = readStrictly(field)
      assert.deepEqual(
        read.map(({ method, result }) => [method, result]),
        given.map(({ method, result }) => [method, result]),
      )
      for (const [index, { properties }] of read.entries()) {
        const values = given[index]!.properties.map(([, , value]) => value)
        for (const [, , value] of properties)
          assert.ok(
            values.some((given) => [given, domainToASCII(given)].includes(value) || value.includes('xn--')),
            value,
          )
      }
    }),
    { numRuns: 2000 },
  )
})

test('any SPF findings are written as one Received-SPF with each key once', () => {
  const text = written
  const spf = fc.record({
    reason: text,
    envelopeFrom: text,
    helo: text,
    mechanism: fc.option(text),
    result: fc.constantFrom('pass', 'none', 'permerror') as fc.Arbitrary<ReceivedSpf['result']>,
  })
  const quoted = '"(?:[^"\\\\]|\\\\["\\\\])*"'
  const pair = `[a-z-]+=(?:${quoted}|[A-Za-z0-9!#$%&'*+/=?^_\`{|}~.-]+)`
  const whole = new RegExp(
    `^Received-SPF: [a-z]+ (?:\\((?:[^()\\\\]|\\\\[()\\\\])*\\) )?${pair}(?:; ${pair})*\\r\\n$`,
  )
  fc.assert(
    fc.property(spf, charsets, (given, charset) => {
      const field = receivedSpf({ ...verdict, ...given }, charset)
      assertIsOneField(field, charset)
      const unfolded = field.replaceAll('\r\n ', ' ')
      assert.match(unfolded, whole)
    }),
    { numRuns: 2000 },
  )
})

const readWithMailauth = createRequire(import.meta.url)('mailauth/lib/parse-dkim-headers') as (
  field: Buffer,
) => { parsed: Record<string, Record<string, Record<string, string>>> }
/** mailauth collapses white space to one space, within quotes too. */
const collapsed = (text: string) => text.replace(/\s+/g, ' ')

test('mailauth reads every value as it was written', () => {
  const one = fc.tuple(written, written, charsets)
  fc.assert(
    fc.property(one, ([reason, value, charset]) => {
      const properties = [
        ['smtp', 'mailfrom', value],
        ['smtp', 'helo', 'a.example'],
      ] as const
      const field = authenticationResults(
        ours,
        [{ method: 'spf', result: 'pass', reason, properties }],
        charset,
      )
      const { spf } = readWithMailauth(Buffer.from(field)).parsed
      assert.equal(spf!['value'], 'pass')
      assert.equal(spf!['smtp']!['helo'], 'a.example')
      const read = spf!['smtp']!['mailfrom']
      const strict = readStrictly(field)[0]!.properties.find(([, name]) => name === 'mailfrom')
      assert.equal(read, strict && collapsed(strict[2]))
    }),
    { numRuns: 1000 },
  )
})

const python = '/usr/bin/python3'
const hasAuthres = spawnSync(python, ['-c', 'import authres']).status === 0

test('authres reads every value as it was written', {
  skip: hasAuthres ? false : 'authres is absent',
}, (t) => {
  // authres stops at a quoted value, and drops empty ones. So each result has one property, which is never empty.
  const sample = fc.sample(fc.tuple(written, written), { numRuns: 1000, seed: 53 })
  const fields = sample.map(([reason, value]) => {
    const properties = [['smtp', 'mailfrom', value || 'a'] as const]
    return authenticationResults(ours, [{ method: 'spf', result: 'pass', reason, properties }], 'ascii')
  })
  const script = join(import.meta.dirname, '../../tests/support/auth-results-authres.py')
  const input = JSON.stringify(fields.map((field) => field.replaceAll('\r\n ', ' ')))
  const { stdout } = spawnSync(python, [script], { input, encoding: 'utf8', maxBuffer: 1 << 26 })
  const read = JSON.parse(stdout) as ([string, string, [string, string, string][]][] | null)[]
  t.diagnostic(`authres: ${read.filter((one) => one !== null).length} of ${fields.length} fields read`)
  for (const [index, one] of read.entries()) {
    const wanted = readStrictly(fields[index]!).map(({ method, result, properties }) => [
      method,
      result,
      properties,
    ])
    const plain = one?.map(([method, result, properties]) => [
      method,
      result,
      properties.map(([ptype, name, value]) => [ptype, name, value.replace(/\\(.)/g, '$1')]),
    ])
    assert.deepEqual(plain, wanted, fields[index])
  }
})
