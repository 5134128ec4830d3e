// Which entries are kept, and that the limits hold.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Clock } from './clock.ts'
import { RecentlyUsed } from './recently-used.ts'

test('the least recently used entry is dropped first', () => {
  const map = new RecentlyUsed<number>({ maxEntries: 3, maxBytes: 100 })
  for (const [index, key] of ['a', 'b', 'c'].entries()) map.set(key, index, 1)
  assert.equal(map.use('a'), 0)
  map.set('d', 3, 1)
  assert.deepEqual([map.has('a'), map.has('b'), map.has('c'), map.has('d')], [true, false, true, true])
})

test('a large entry replaces several, and an entry over the limit replaces none', () => {
  const map = new RecentlyUsed<number>({ maxEntries: 10, maxBytes: 100 })
  for (const key of ['a', 'b', 'c']) map.set(key, 0, 30)
  map.set('d', 0, 70)
  assert.deepEqual([map.count, map.sizeBytes, map.has('c')], [2, 100, true])
  map.set('e', 0, 101)
  assert.deepEqual([map.count, map.has('e')], [2, false])
  map.set('c', 0, 101)
  assert.equal(map.use('c'), undefined)
})

test('entries that nobody used for a time are dropped by the next one', () => {
  const clock = new Clock()
  const map = new RecentlyUsed<number>({ maxEntries: 10, maxBytes: 100, idle: { clock, ms: 60_000 } })
  for (const key of ['a', 'b', 'c']) map.set(key, 0, 10)
  clock.advance(40_000)
  map.use('a')
  clock.advance(40_000)
  map.set('d', 0, 10)
  assert.deepEqual([map.has('a'), map.has('b'), map.has('c')], [true, false, false])
  assert.deepEqual([map.count, map.sizeBytes], [2, 20])
})

test('the bounds hold, and the byte count is exact', () => {
  const step = fc.record({ key: fc.constantFrom(...'abcdefgh'), sizeBytes: fc.nat(60), isUse: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const map = new RecentlyUsed<number>({ maxEntries: 4, maxBytes: 100 })
      const sizes = new Map<string, number>()
      for (const { key, sizeBytes, isUse } of steps) {
        if (isUse) map.use(key)
        else map.set(key, sizeBytes, sizeBytes)
        sizes.set(key, isUse ? (sizes.get(key) ?? 0) : sizeBytes)
        const kept = [...'abcdefgh'].filter((each) => map.has(each))
        assert.equal(map.count, kept.length)
        assert.equal(
          map.sizeBytes,
          kept.reduce((sum, each) => sum + sizes.get(each)!, 0),
        )
        assert.ok(map.count <= 4 && map.sizeBytes <= 100)
      }
    }),
  )
})
