// SPF as a receiver asks for it: identities, limits, deadlines, and the results of hostile records.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookupIn, zoneOf } from '../../../tests/support/zone.ts'
import type { Lookup } from '../lookup.ts'
import { checkSpf, type SpfInput, type SpfOptions } from './check-spf.ts'

type Names = Parameters<typeof zoneOf>[0]

const mail: SpfInput = {
  ip: '192.0.2.1',
  helo: 'mail.a.example',
  from: 'ann@a.example',
  hostname: 'mx.b.example',
  at: new Date('2026-11-21T09:05:07Z'),
}

function check(names: Names, input: Partial<SpfInput> = {}, options?: SpfOptions) {
  return checkSpf(lookupIn(zoneOf(names)), { ...mail, ...input }, options)
}

const verdicts: [string, Names, Partial<SpfInput>, string, string | null][] = [
  ['a network', { 'a.example': { TXT: ['v=spf1 ip4:192.0.2.0/24 -all'] } }, {}, 'pass', 'ip4:192.0.2.0/24'],
  ['no match', { 'a.example': { TXT: ['v=spf1 ip4:192.0.2.2'] } }, {}, 'neutral', null],
  ['all', { 'a.example': { TXT: ['v=spf1 ~all'] } }, {}, 'softfail', '~all'],
  [
    'IPv4 in IPv6',
    { 'a.example': { TXT: ['v=spf1 ip4:192.0.2.1'] } },
    { ip: '::ffff:192.0.2.1' },
    'pass',
    'ip4:192.0.2.1',
  ],
  [
    'an included record',
    { 'a.example': { TXT: ['v=spf1 include:b.example -all'] }, 'b.example': { TXT: ['v=spf1 +all'] } },
    ...([{}, 'pass', 'include:b.example'] as const),
  ],
  [
    'a redirected record',
    { 'a.example': { TXT: ['v=spf1 redirect=b.example'] }, 'b.example': { TXT: ['v=spf1 ?all'] } },
    ...([{}, 'neutral', '?all'] as const),
  ],
  [
    'U-labels',
    { 'xn--bcher-kva.example': { TXT: ['v=spf1 +all'] } },
    { from: 'a@Bücher.example.' },
    'pass',
    '+all',
  ],
  ['no record', { 'a.example': { TXT: ['other'] } }, {}, 'none', null],
  ['no DNS', { 'a.example': 'silent' }, {}, 'temperror', null],
  [
    'a local part beyond ASCII',
    { 'a.example': { TXT: ['v=spf1 exists:%{l}.a.example include:%{s}.a.example ~all'] } },
    { from: 'é@a.example' },
    'softfail',
    '~all',
  ],
]

for (const [what, names, input, result, mechanism] of verdicts) {
  test(`check 53: ${what} is ${result}`, async () => {
    const verdict = await check(names, input)
    assert.deepEqual([verdict.result, verdict.mechanism], [result, mechanism], verdict.reason)
  })
}

test('check 53: the verdict names the checked identity, the reason and the questions asked', async () => {
  const names = { 'a.example': { TXT: ['v=spf1 a:b.example mx -all'] }, 'b.example': { A: ['192.0.2.9'] } }
  assert.deepEqual(await check(names), {
    result: 'fail',
    reason: '192.0.2.1 matches -all of a.example',
    domain: 'a.example',
    identity: 'mailfrom',
    mechanism: '-all',
    explanation: null,
    asked: ['TXT a.example', 'A b.example', 'MX a.example'],
  })
})

test('check 53: with the null return path HELO is checked, as postmaster', async () => {
  const names = {
    'mail.a.example': { TXT: ['v=spf1 exists:%{l}.%{o} -all'] },
    'postmaster.mail.a.example': { A: ['127.0.0.2'] },
  }
  const { result, identity, domain } = await check(names, { from: '' })
  assert.deepEqual([result, identity, domain], ['pass', 'helo', 'mail.a.example'])
})

for (const helo of [
  '',
  'mail',
  '[192.0.2.1]',
  '192.0.2.1',
  'a..b',
  'a b.c',
  'x'.repeat(70_000),
  'a\r\nb.example',
]) {
  test(`check 53: HELO ${JSON.stringify(helo.slice(0, 20))} costs no question`, async () => {
    const { result, domain, asked } = await check({}, { from: '', helo })
    assert.deepEqual({ result, domain, asked }, { result: 'none', domain: '', asked: [] })
  })
}

/** The same, counting every question, repeated ones too. */
function counting(lookup: Lookup): { lookup: Lookup; count(): number } {
  let count = 0
  return {
    lookup: (type, name) => {
      count++
      return lookup(type, name)
    },
    count: () => count,
  }
}

const hosts = Array.from({ length: 10 }, (_, index) => `h${index}.a.example`)
const addressesOfHosts = Object.fromEntries(hosts.map((host) => [host, { A: ['198.51.100.1'] }]))

const hostile: [string, Names, string][] = [
  [
    'includes of itself',
    { 'a.example': { TXT: ['v=spf1 include:a.example include:a.example'] } },
    'permerror',
  ],
  ['a circle of redirects', { 'a.example': { TXT: ['v=spf1 redirect=%{d}'] } }, 'permerror'],
  ['11 terms', { 'a.example': { TXT: [`v=spf1${' a'.repeat(11)}`], A: ['198.51.100.1'] } }, 'permerror'],
  ['10 terms', { 'a.example': { TXT: [`v=spf1${' a'.repeat(10)}`], A: ['198.51.100.1'] } }, 'neutral'],
  ['three void look-ups', { 'a.example': { TXT: ['v=spf1 a mx exists:b.example'] } }, 'permerror'],
  ['two void look-ups', { 'a.example': { TXT: ['v=spf1 a mx'] } }, 'neutral'],
  ['11 mail hosts', { 'a.example': { TXT: ['v=spf1 mx'], MX: [...hosts, 'x.example'] } }, 'permerror'],
  [
    '10 times 10 mail hosts, and 10 names of the client',
    {
      ...addressesOfHosts,
      'a.example': { TXT: [`v=spf1${' mx'.repeat(10)} -all exp=%{p}.a.example`], MX: hosts },
      '1.2.0.192.in-addr.arpa': { PTR: [...hosts, 'x.example'] },
    },
    'fail',
  ],
  [
    'a ptr and %{p} in every term',
    {
      ...addressesOfHosts,
      'a.example': { TXT: ['v=spf1 ptr:%{p}.b.example ptr ptr ptr ptr ?all'] },
      '1.2.0.192.in-addr.arpa': { PTR: [...hosts, 'a.example'] },
    },
    'neutral',
  ],
  ['1,000 records', { 'a.example': { TXT: Array(1000).fill('v=spf1 -all') } }, 'permerror'],
  ['64 KB', { 'a.example': { TXT: [`v=spf1 ${'a'.repeat(65_536)}`] } }, 'permerror'],
  [
    '10,000 addresses',
    { 'a.example': { TXT: ['v=spf1 a -all'], A: Array(10_000).fill('198.51.100.1') } },
    'fail',
  ],
]

// The record: 1. Each of 10 terms: 1, and 1 for each of 10 names. The explanation: 1, and 11 for its names.
const maxQuestions = 1 + 10 * 11 + 1 + 11

for (const [what, names, result] of hostile) {
  test(`check 53: ${what} is ${result}, in bounded time and questions`, async (t) => {
    const counted = counting(lookupIn(zoneOf(names)))
    const startedMs = performance.now()
    const verdict = await checkSpf(counted.lookup, mail)
    t.diagnostic(`${what}: ${counted.count()} questions`)
    assert.equal(verdict.result, result, verdict.reason)
    assert.ok(counted.count() <= maxQuestions && performance.now() - startedMs < 1000)
  })
}

test('check 53: a fail stays a fail if its explanation comes too late', async () => {
  const zone = lookupIn(zoneOf({ 'a.example': { TXT: ['v=spf1 -all exp=why.example'] } }))
  const lookup: Lookup = async (type, name) =>
    name === 'why.example' ? { status: 'temporary', reason: 'late' } : await zone(type, name)
  const { result, explanation } = await checkSpf(lookup, mail)
  assert.deepEqual([result, explanation], ['fail', null])
})

const explanations: [string, string[], Partial<SpfInput>, string | null][] = [
  ['text', ['Ask %{r} about %{i}.'], {}, 'Ask mx.b.example about 192.0.2.1.'],
  ['a line end in it', ['a\r\n250 OK'], {}, null],
  ['a line end out of HELO', ['Bad %{h}'], { helo: 'a\r\n250 OK' }, null],
  ['a local part beyond ASCII', ['Bad %{l}'], { from: 'é@a.example' }, null],
  ['that escaped', ['Bad %{L}'], { from: 'é@a.example' }, 'Bad %C3%A9'],
  ['too much', ['x'.repeat(1000)], {}, 'x'.repeat(400)],
  ['far too much', ['x'.repeat(60_000)], {}, null],
  ['nothing', [''], {}, null],
]

for (const [what, texts, input, explanation] of explanations) {
  test(`check 53: an explanation is judged: ${what}`, async () => {
    const names = { 'a.example': { TXT: ['v=spf1 -all exp=why.%{d}'] }, 'why.a.example': { TXT: texts } }
    const verdict = await check(names, input)
    assert.deepEqual([verdict.result, verdict.explanation], ['fail', explanation])
  })
}

test('a malformed client address throws as a bug', async () => {
  await assert.rejects(check({}, { ip: 'unknown' }), { message: 'the address of a client is no IP address' })
})
