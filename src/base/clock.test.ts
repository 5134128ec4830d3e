// A change of the machine's clock does not change the service's time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from './clock.ts'

test('the database’s time advances evenly, whatever the machine’s own clock does', (t) => {
  const clock = new Clock()
  const databaseMs = Date.UTC(2026, 10, 21, 9)
  clock.synchronize(databaseMs, performance.now())
  const trueNow = Date.now
  t.mock.method(Date, 'now', () => trueNow() + 100 * 3_600_000)
  const passedMs = clock.nowMs() - databaseMs
  assert.ok(passedMs >= 0 && passedMs < 60_000, `${passedMs} ms`)
  assert.ok(Number.isInteger(clock.nowMs()))
  clock.advance(5_000)
  assert.ok(clock.nowMs() - databaseMs >= 5_000)
})
