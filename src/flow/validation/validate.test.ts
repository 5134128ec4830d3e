// The verdict on an address: the order of its reasons, and that each further finding only makes it worse.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decide, type Findings, reasons } from './validate.ts'

const fine: Findings = {
  syntax: true,
  domain: true,
  mx: true,
  nullMx: false,
  disposable: false,
  role: false,
  freeProvider: false,
  mailbox: null,
  isSuppressed: false,
  hasSuggestion: false,
}
const unasked = { domain: null, mx: null, nullMx: null }

/** In the order of the decision. Each is the reason even if all later ones hold as well. */
const causes: [reason: string, verdict: string, found: Partial<Findings>][] = [
  ['invalid_syntax', 'undeliverable', { syntax: false, ...unasked }],
  ['domain_not_found', 'undeliverable', { ...unasked, domain: false }],
  ['null_mx', 'undeliverable', { mx: false, nullMx: true }],
  ['no_mail_server', 'undeliverable', { mx: false }],
  ['dns_error', 'unknown', unasked],
  ['mailbox_not_found', 'undeliverable', { mailbox: false }],
  ['suppressed', 'undeliverable', { isSuppressed: true }],
  ['disposable', 'risky', { disposable: true }],
  ['possible_typo', 'risky', { hasSuggestion: true }],
  ['role_account', 'risky', { role: true }],
  ['accepted', 'deliverable', {}],
]

test('check 79: the reasons have a fixed order', () => {
  assert.deepEqual(
    reasons,
    causes.map(([reason]) => reason),
  )
})

for (const [index, [reason, verdict, found]] of causes.entries())
  test(`check 79: ${reason} is ${verdict}, alone and before all later reasons`, () => {
    assert.deepEqual(decide({ ...fine, ...found }), { verdict, reason })
    const following = causes.slice(index + 1).map(([, , later]) => later)
    assert.deepEqual(decide(Object.assign({ ...fine }, ...following.reverse(), found)), { verdict, reason })
  })

const bad: Partial<Findings>[] = [
  ...[{ syntax: false }, { domain: false }, { nullMx: true }, { mx: false }, { mailbox: false }],
  ...[{ isSuppressed: true }, { disposable: true }, { hasSuggestion: true }, { role: true }],
]
const badness = { deliverable: 0, risky: 1, unknown: 2, undeliverable: 3 }

test('check 79: a further bad finding never improves the verdict', () => {
  const known = fc.option(fc.boolean(), { nil: null })
  const findings = fc.record({
    syntax: fc.boolean(),
    domain: known,
    mx: known,
    nullMx: known,
    disposable: known,
    role: known,
    freeProvider: known,
    mailbox: known,
    isSuppressed: fc.boolean(),
    hasSuggestion: fc.boolean(),
  })
  const property = fc.property(findings, fc.constantFrom(...bad), (before, worse) => {
    const verdicts = [decide(before), decide({ ...before, ...worse })]
    assert.ok(badness[verdicts[1]!.verdict] >= badness[verdicts[0]!.verdict])
  })
  fc.assert(property, { numRuns: 5000 })
})
