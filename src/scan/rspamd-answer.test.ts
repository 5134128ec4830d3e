// Tests reading Rspamd's answers, and that other bytes give null or bounded findings and never take long.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { inCpuTime } from '../../tests/support/cpu-time.ts'
import { readSpamFindings, type SpamFindings } from './rspamd-answer.ts'

const plain: SpamFindings = { score: 1.5, requiredScore: 15, action: 'no action', symbols: [] }
const text = (changes: object) =>
  JSON.stringify({
    is_skipped: false,
    score: 1.5,
    required_score: 15,
    action: 'no action',
    symbols: {},
    messages: {},
    'message-id': 'undef',
    time_real: 0.07,
    ...changes,
  })
const rules = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`R${n}`, { name: `R${n}`, score: n % 2 ? n : -n }]),
  )

const cases: [what: string, answer: string, findings: Partial<SpamFindings> | null][] = [
  ['a plain answer', text({}), {}],
  ['a refused one', text({ action: 'reject', score: 15.0 }), { action: 'reject', score: 15 }],
  ['a negative score', text({ score: -3.25 }), { score: -3.25 }],
  ['an action of the operator', text({ action: 'quarantine' }), { action: 'quarantine' }],
  ['no symbols at all', text({ symbols: undefined }), {}],
  ['no required score', text({ required_score: null }), { requiredScore: null }],
  [
    'symbols by their weight',
    text({ symbols: { A: { score: 1 }, B: { score: -5 }, C: { score: 2 }, D: {}, E: 7 } }),
    { symbols: ['B', 'C', 'A', 'D', 'E'] },
  ],
  [
    'names that could do harm',
    text({ symbols: { 'A\r\nB': {}, 'é<b>': {} } }),
    { symbols: ['A??B', '?<b>'] },
  ],
  ['a long name', text({ symbols: { ['x'.repeat(1000)]: {} } }), { symbols: ['x'.repeat(100)] }],
  ['names of nothing', text({ symbols: { '': {}, ' ': {} } }), {}],
  [
    'names that objects have',
    '{"score":1.5,"required_score":15,"action":"no action","symbols":{"__proto__":{}}}',
    { symbols: ['__proto__'] },
  ],
  ['a long action', text({ action: ` ${'y'.repeat(1000)}` }), { action: 'y'.repeat(99) }],
  ['no score', text({ score: undefined }), null],
  ['a score that is a word', text({ score: '1.5' }), null],
  ['a score beyond all', text({}).replace('1.5', '1e999'), null],
  ['no number', text({}).replace('1.5', 'nan'), null],
  ['no action', text({ action: undefined }), null],
  ['an action of nothing', text({ action: ' ' }), null],
  ['an action that is none', text({ action: 7 }), null],
  ['symbols in a list', text({ symbols: ['A'] }), null],
  ['an error', '{"error":"invalid command","error_domain":"protocol-error"}', null],
  ['another form', '[]', null],
  ['null', 'null', null],
  ['nothing', '', null],
  ['half of it', text({}).slice(0, -1), null],
  ['more than it', `${text({})}{}`, null],
]

for (const [what, answer, findings] of cases)
  test(`${what} is ${findings ? 'understood' : 'not understood'}`, () => {
    assert.deepEqual(readSpamFindings(answer), findings && { ...plain, ...findings })
  })

test('the 200 symbols with the most weight are kept', () => {
  const { symbols = [] } = readSpamFindings(text({ symbols: rules(5000) })) ?? {}
  assert.equal(symbols.length, 200)
  assert.deepEqual(symbols.slice(0, 3), ['R4999', 'R4998', 'R4997'])
})

const words = fc.constantFrom('score', 'action', 'symbols', 'required_score', 'reject', '__proto__', 'A\n')
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    ...[words, fc.double(), fc.constant(null), fc.string({ unit: 'binary' })],
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(words, tie('value'), { maxKeys: 5 }),
  ),
})).value

test('any answer is refused, or read as bounded printable text', () => {
  const text = fc.string({ unit: 'binary' })
  const score = fc.double({ min: -2e6, max: 2e6, noNaN: true })
  const symbols = fc.dictionary(fc.oneof(words, text), value, { maxKeys: 300 })
  const answers = fc.oneof(
    fc.record({ score, required_score: fc.oneof(score, value), action: fc.oneof(words, text), symbols }),
    fc.record({ score: fc.oneof(score, value), action: fc.oneof(text, value), symbols: value }),
    value,
  )
  let understood = 0
  const isPrintable = (name: string) => /^[\x21-\x7e](?:[\x20-\x7e]{0,98}[\x21-\x7e])?$/.test(name)
  fc.assert(
    fc.property(answers, fc.nat(3), (answer, cut) => {
      const written = JSON.stringify(answer) ?? ''
      const findings = readSpamFindings(cut === 0 ? written.slice(0, -1) : written)
      if (!findings) return
      understood++
      assert.ok(Number.isFinite(findings.score) && Math.abs(findings.score) <= 1e6)
      assert.ok(findings.symbols.length <= 200 && [findings.action, ...findings.symbols].every(isPrintable))
      assert.doesNotThrow(() => JSON.stringify(findings))
    }),
    { numRuns: 5_000 },
  )
  assert.ok(understood > 500, `${understood} were understood`)
})

for (const [what, piece, end] of [
  ['brackets', '[', ''],
  ['objects', '{"a":', ''],
  ['objects in order', '{"symbols":', ''],
  ['symbols', '"A":{},', '"B":{}}}'],
  ['escapes', '\\u0000', ''],
] as const)
  test(`256 KiB of ${what} are read in bounded time`, () => {
    const start = what === 'symbols' ? '{"score":1,"action":"a","symbols":{' : what === 'escapes' ? '"' : ''
    const answer = start + piece.repeat((256 << 10) / piece.length) + end
    inCpuTime(200, () => readSpamFindings(answer))
  })
