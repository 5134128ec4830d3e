// Tests that every grammar takes linear time: its tokens up to every limit, four times as many in four times the time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { grammars } from '../support/grammars.ts'
import { findFaults, growthOf } from '../support/linear-time.ts'

const factor = Number(process.env['FUZZ_FACTOR'] ?? 1)

for (const grammar of grammars) {
  test(`hostile 2, 3: reading takes linear time, and its output is no larger than its input: ${grammar.name}`, () => {
    assert.deepEqual(findFaults(grammar, factor), [])
  })

  test(`hostile 2: output stays no larger than input, in any mix of tokens: ${grammar.name}`, () => {
    const text = fc
      .array(fc.constantFrom(...grammar.tokens), { maxLength: 300 })
      .map((tokens) => tokens.join(''))
    const property = fc.property(text, (one) => assert.equal(growthOf(grammar, one, grammar.read(one)), null))
    fc.assert(property, { numRuns: 200 * factor })
  })
}
