// A reply to a mail with any header reads as intended in three independent parsers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repliesReadBack } from '../support/hostile-headers.ts'

const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
const count = 300 * Number(process.env['FUZZ_FACTOR'] ?? 1)

test(`hostile 4: answers to ${count} hostile headers read back as intended (seed ${seed})`, async (t) => {
  const { answered, failed } = await repliesReadBack(count, seed)
  t.diagnostic(`${answered} of ${count} had somebody to answer`)
  assert.deepEqual(failed, [])
  assert.ok(answered > count / 2)
})
