// Tests the record and the text of MTA-STS policies, the names that they match, and when a policy is fetched.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type KnownPolicy, mustFetch, namesHost, parseStsPolicy, readStsId, validPolicy } from './mta-sts.ts'

const records: [texts: string[], id: string | null][] = [
  [['v=STSv1; id=20160831085700Z;'], '20160831085700Z'],
  [['v=STSv1;id=1'], '1'],
  [['v=STSv1 ;\tid=1 ; x.y=z'], '1'],
  [['v=STSv1; a=b; id=1; id=2'], '1'],
  [['v=spf1 -all', 'v=STSv1; id=1'], '1'],
  [['v=STSv1; id=1', 'v=STSv1; id=1'], null],
  [['v=STSv1; id=1', 'v=STSv1; broken'], null],
  [['v=STSv1'], null],
  [['v=STSv1;'], null],
  [['v=STSv2; id=1'], null],
  [['V=STSv1; id=1'], null],
  [['id=1; v=STSv1;'], null],
  [['v=STSv1; id=a-b'], null],
  [[`v=STSv1; id=${'1'.repeat(33)}`], null],
  [['v=STSv1; id=1;; x=y'], null],
  [[`v=STSv1; id=1; ${'x=y;'.repeat(2000)}`], null],
  [[], null],
]

for (const [texts, id] of records) {
  test(`check 36: the record ${JSON.stringify(texts).slice(0, 60)} has the id ${id}`, () => {
    assert.equal(readStsId(texts), id)
  })
}

const whole = 'version: STSv1\r\nmode: enforce\r\nmx: mx.far.test\r\nmx: *.far.test\r\nmax_age: 604800\r\n'
const parsed = { mode: 'enforce', mx: ['mx.far.test', '*.far.test'], maxAgeSeconds: 604_800 }

const policies: [name: string, text: string, found: object][] = [
  ['the example of the RFC', whole, { policy: parsed }],
  ['line feeds', whole.replaceAll('\r\n', '\n').trimEnd(), { policy: parsed }],
  ['another order, unknown fields and spaces', `x-y: ü z\nmax_age:604800 \t\n${whole}`, { policy: parsed }],
  ['repeated fields', `${whole}mode: none\nmax_age: 1\nversion: STSv2\n`, { policy: parsed }],
  ['capital letters', whole.replace('mx.far', 'MX.Far'), { policy: parsed }],
  [
    'no mail server in mode none',
    'version: STSv1\nmode: none\nmax_age: 0\n',
    { policy: { mode: 'none', mx: [], maxAgeSeconds: 0 } },
  ],
  [
    'more than a year',
    whole.replace('604800', '9999999999'),
    { policy: { ...parsed, maxAgeSeconds: 31_557_600 } },
  ],
  ['no version', whole.replace('version: STSv1', ''), { fault: 'the version is not STSv1' }],
  ['another version', whole.replace('STSv1', 'STSv2'), { fault: 'the version is not STSv1' }],
  [
    'another mode',
    whole.replace('enforce', 'Enforce'),
    { fault: 'the mode is none of enforce, testing and none' },
  ],
  ['no age', whole.replace(/max_age.*/, ''), { fault: 'max_age is not a number of seconds' }],
  ['a negative age', whole.replace('604800', '-1'), { fault: 'max_age is not a number of seconds' }],
  ['no mail server', whole.replace(/mx: .*\r\n/g, ''), { fault: 'there is no mx field' }],
  [
    'a wildcard inside',
    whole.replace('*.far', 'a.*.far'),
    { fault: 'an mx field is not the name of a mail server' },
  ],
  [
    'a name of U-labels',
    whole.replace('mx.far', 'mü.far'),
    { fault: 'an mx field is not the name of a mail server' },
  ],
  ['many servers', `${whole}${'mx: a.test\n'.repeat(63)}`, { fault: 'more than 64 mx fields' }],
  ['HTML', '<html>', { fault: 'a line is not `name: value`' }],
  ['too many bytes', `${whole}x: ${'y'.repeat(65_536)}`, { fault: 'longer than 65536 bytes' }],
]

for (const [name, text, found] of policies) {
  test(`check 36: a policy with ${name}`, () => assert.deepEqual(parseStsPolicy(text), found))
}

test('check 36: a wildcard replaces exactly one label, the first', () => {
  const policy = { mx: ['mx.far.test', '*.deep.far.test'] }
  const named = ['mx.far.test', 'MX.far.test.', 'a.deep.far.test']
  const unnamed = [
    'far.test',
    'a.mx.far.test',
    'deep.far.test',
    'a.b.deep.far.test',
    'x-mx.far.test',
    'test',
    '',
  ]
  assert.deepEqual(
    [...named, ...unnamed].filter((host) => namesHost(policy, host)),
    named,
  )
})

const at = new Date('2026-11-28T12:00:00Z')
const after = (seconds: number) => new Date(at.getTime() + seconds * 1000)
const policy = { mode: 'enforce' as const, mx: ['mx.far.test'], maxAgeSeconds: 60 }
const known: KnownPolicy = { id: '1', policy, expiresAt: after(60), failedAt: null }

test('check 36: a policy is fetched for a new id, or if none is valid, five minutes after a failure at the earliest', () => {
  const expired = { ...known, expiresAt: at }
  const cases: [known: KnownPolicy | null, id: string | null, isFetched: boolean][] = [
    [null, '1', true],
    [null, null, false],
    [known, '1', false],
    [known, '2', true],
    [known, null, false],
    [expired, '1', true],
    [expired, null, false],
    [{ ...known, failedAt: after(-299) }, '2', false],
    [{ ...known, failedAt: after(-300) }, '2', true],
  ]
  for (const [before, id, isFetched] of cases) assert.equal(mustFetch(before, id, at), isFetched)
  assert.equal(validPolicy(known, at), policy)
  assert.equal(validPolicy(expired, at), null)
})

test('check 36: no text makes the parser throw, and each policy that it finds is within its bounds', () => {
  const name = fc.constantFrom('version', 'mode', 'mx', 'max_age', 'x', '')
  const value = fc.oneof(fc.constantFrom('STSv1', 'enforce', 'none', '*.a.test', '86400'), fc.string())
  const text = fc
    .array(
      fc.tuple(name, fc.constantFrom(':', ': ', ' :', ''), value, fc.constantFrom('\n', '\r\n', '\r', '')),
    )
    .map((lines) => lines.flat().join(''))
  fc.assert(
    fc.property(fc.oneof(text, fc.string({ unit: 'binary' })), fc.domain(), (written, host) => {
      readStsId([`v=STSv1;${written}`])
      const found = parseStsPolicy(written)
      if ('fault' in found) return
      const { mode, mx, maxAgeSeconds } = found.policy
      assert.ok(mode === 'none' || mx.length > 0)
      assert.ok(mx.length <= 64 && maxAgeSeconds >= 0 && maxAgeSeconds <= 31_557_600)
      const isNamed = mx.some((entry) => entry === host || entry === host.replace(/^[^.]+/, '*'))
      assert.equal(namesHost(found.policy, host), isNamed)
    }),
    { numRuns: 300 },
  )
})
