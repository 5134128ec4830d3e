// How long mail waits for its next attempt, by its route.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryScheduleOf } from './route-policy.ts'

test('mail within this deployment is retried in short steps first, other mail by the setting alone', () => {
  for (const route of ['@local', '@capture']) {
    assert.deepEqual(retryScheduleOf(route, [60_000, 300_000]), [1_000, 5_000, 15_000, 60_000, 300_000])
    assert.deepEqual(retryScheduleOf(route, [5_000]), [1_000, 5_000])
    assert.deepEqual(retryScheduleOf(route, [500]), [500])
  }
  for (const route of ['@relay', 'far.test']) assert.deepEqual(retryScheduleOf(route, [60_000]), [60_000])
})
