// Identifiers in the order of their making.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newUuid, uuidTimeMs } from './ids.ts'

test('a UUID is of version 7, says when it was made, and sorts after those made before it', () => {
  const before = Date.now()
  // More than the 4,096 that fit into a millisecond, so that the count runs over into the time.
  const made = Array.from({ length: 50_000 }, () => newUuid())
  for (const [i, id] of made.entries()) {
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    if (i > 0) assert.ok(made[i - 1]! < id, `${made[i - 1]} before ${id}`)
  }
  assert.ok(uuidTimeMs(made[0]!)! >= before)
  assert.ok(uuidTimeMs(made.at(-1)!)! <= Date.now() + 50_000 / 4096)
  assert.equal(uuidTimeMs('0198f6a0-0000-4000-8000-000000000000'), null)
})
