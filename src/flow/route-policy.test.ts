// How long mail waits for its next attempt, by its route, and which route mail with a wish for TLS or a pool takes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRoute, retryScheduleOf, routeFor, withWishes } from './route-policy.ts'

test('mail within this deployment is retried in short steps first, other mail by the setting alone', () => {
  for (const route of ['@local', '@capture', 'requiretls:@local']) {
    assert.deepEqual(retryScheduleOf(route, [60_000, 300_000]), [1_000, 5_000, 15_000, 60_000, 300_000])
    assert.deepEqual(retryScheduleOf(route, [5_000]), [1_000, 5_000])
    assert.deepEqual(retryScheduleOf(route, [500]), [500])
  }
  for (const route of ['@relay', 'far.test']) assert.deepEqual(retryScheduleOf(route, [60_000]), [60_000])
})

test('mail with a wish for TLS has queues of its own, and a demand stays with mail for our own nodes', () => {
  const rows: [route: string, wish: 'required' | 'optional' | null, key: string][] = [
    ['far.test', null, 'far.test'],
    ['far.test', 'required', 'requiretls:far.test'],
    ['far.test', 'optional', 'anytls:far.test'],
    ['@relay', 'required', 'requiretls:@relay'],
    ['@relay', 'optional', '@relay'],
    ['@local', 'required', 'requiretls:@local'],
    ['@local', 'optional', '@local'],
    ['@capture', 'required', 'requiretls:@capture'],
  ]
  for (const [route, wish, key] of rows) {
    assert.equal(routeFor(route, wish), key)
    assert.equal(readRoute(key).hop, route)
  }
})

test('mail of a pool of source addresses has queues of its own, unless it stays in this deployment', () => {
  for (const [route, wish, key, pool] of [
    ['far.test', null, 'bulk:far.test', 'bulk'],
    ['far.test', 'required', 'requiretls:bulk:far.test', 'bulk'],
    ['far.test', 'optional', 'anytls:bulk:far.test', 'bulk'],
    ['@local', 'required', 'requiretls:@local', null],
    ['@relay', null, '@relay', null],
  ] as const) {
    assert.equal(routeFor(route, wish, 'bulk'), key)
    assert.deepEqual(readRoute(key), { hop: route, wish, pool })
  }
  assert.deepEqual(withWishes('bulk:far.test'), [
    'bulk:far.test',
    'requiretls:bulk:far.test',
    'anytls:bulk:far.test',
  ])
})
