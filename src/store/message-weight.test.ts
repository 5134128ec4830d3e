// What a text weighs in an answer is what its JSON would.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonBytes } from './message-weight.ts'

test('a text weighs what it is as JSON, whatever is in it', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\0', '\x1f', '\x7f', 'ä', '€', '😀', 'a') }),
  )
  fc.assert(fc.property(text, (one) => assert.equal(jsonBytes(one), Buffer.byteLength(JSON.stringify(one)))))
  assert.equal(jsonBytes(null), 0)
})
