// Identifiers in the order of creation, and the short names of submissions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newUuid, queueIdOf, type SubmissionId, uuidTimeMs } from './ids.ts'

test('a UUID is of version 7, holds its time, and sorts after earlier ones', () => {
  const before = Date.now()
  // More than the 4,096 that fit into a millisecond, so that the counter overflows into the time.
  const made = Array.from({ length: 50_000 }, () => newUuid())
  for (const [i, id] of made.entries()) {
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    if (i > 0) assert.ok(made[i - 1]! < id, `${made[i - 1]} before ${id}`)
  }
  assert.ok(uuidTimeMs(made[0]!)! >= before)
  assert.ok(uuidTimeMs(made.at(-1)!)! <= Date.now() + 50_000 / 4096)
  assert.equal(uuidTimeMs('0198f6a0-0000-4000-8000-000000000000'), null)
})

test('a queue id shows the last 60 bits of the submission’s id in base 32', () => {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  fc.assert(
    fc.property(fc.uuid(), (id) => {
      const written = queueIdOf(id as SubmissionId)
      const value = [...written].reduce((sum, digit) => sum * 32n + BigInt(digits.indexOf(digit)), 0n)
      assert.equal(written.length, 12)
      assert.equal(value, BigInt(`0x${id.replaceAll('-', '')}`) & ((1n << 60n) - 1n))
    }),
  )
})
