// Every SPF check over hostile zones ends with a result, within bounded queries and time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Lookup } from '../../src/mailauth/lookup.ts'
import { checkSpf } from '../../src/mailauth/spf/check-spf.ts'
import { lookupIn, zoneOf } from '../support/zone.ts'

const factor = Number(process.env['FUZZ_FACTOR'] ?? 1)

const names = ['a.example', 'b.example', 'c.b.example', 'd.example']
const reverse = '1.2.0.192.in-addr.arpa'
const domainSpec = fc.oneof(
  fc.constantFrom(...names),
  fc
    .array(fc.constantFrom(...names, '.', '%{d}', '%{p}', '%{lr-}', '%{h}', '%{S}', '%{i}', '%%', 'x', '-'), {
      maxLength: 6,
    })
    .map((pieces) => pieces.join('')),
)
const term = fc.oneof(
  fc.constantFrom(
    'all',
    '-all',
    '~all',
    'a',
    'mx',
    'ptr',
    'ip4:192.0.2.0/24',
    'ip6:::/0',
    'a//0',
    'x=y',
    'include',
  ),
  fc
    .tuple(
      fc.constantFrom('', '-', '?'),
      fc.constantFrom('include:', 'a:', 'mx:', 'exists:', 'ptr:', 'redirect=', 'exp='),
      domainSpec,
    )
    .map((parts) => parts.join('')),
)
const record = fc.oneof(
  { weight: 9, arbitrary: fc.array(term, { maxLength: 12 }).map((terms) => `v=spf1 ${terms.join(' ')}`) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }).map((text) => `v=spf1 ${text}`) },
)
const address = fc.constantFrom('192.0.2.1', '198.51.100.1')
const host = fc.oneof(fc.constantFrom(...names, ''), fc.string({ unit: 'binary', maxLength: 10 }))
const zoneName = fc.oneof(
  { weight: 1, arbitrary: fc.constant('silent' as const) },
  {
    weight: 6,
    arbitrary: fc.record(
      {
        TXT: fc.oneof(
          { weight: 5, arbitrary: record.map((one) => [one]) },
          { weight: 1, arbitrary: fc.array(record) },
        ),
        A: fc.array(address, { maxLength: 3 }),
        MX: fc.array(host, { maxLength: 12 }),
        PTR: fc.array(host, { maxLength: 12 }),
      },
      { requiredKeys: ['TXT'] },
    ),
  },
)
const zone = fc
  .tuple(...[...names, reverse].map((name) => fc.tuple(fc.constant(name), zoneName)))
  .map((entries) => zoneOf(Object.fromEntries(entries)))
const sender = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('', ...names.map((name) => `a-b@${name}`)) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
)
const input = { ip: '192.0.2.1', hostname: 'mx.b.example', at: new Date(0) }

const maxQuestions = 123

test('check 53: any records and sender get a result, in bounded questions, in words that fit a header', async (t) => {
  const counts = new Map<string, number>()
  let most = 0
  const property = fc.asyncProperty(zone, sender, host, async (one, from, helo) => {
    let questions = 0
    const lookup: Lookup = (type, name) => {
      questions++
      assert.match(name, /^[\x20-\x7e]{1,253}$/)
      return lookupIn(one)(type, name)
    }
    const { result, reason, explanation, mechanism } = await checkSpf(lookup, { ...input, helo, from })
    assert.match(`${reason}${mechanism ?? ''}${explanation ?? ''}`, /^[\x20-\x7e]{1,1000}$/)
    assert.ok(questions <= maxQuestions)
    most = Math.max(most, questions)
    counts.set(result, (counts.get(result) ?? 0) + 1)
  })
  await fc.assert(property, { numRuns: 2000 * factor, ignoreEqualValues: true })
  t.diagnostic(`${[...counts].map((one) => one.join(' ')).join(', ')}; at most ${most} questions`)
  assert.equal(counts.size, 7, 'every result was met')
})
