// Tests of bounded-map.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { inCpuTime } from '../../tests/support/cpu-time.ts'
import { reachableBytes } from '../../tests/support/heap.ts'
import { BoundedMap } from './bounded-map.ts'

const steps = fc.array(fc.tuple(fc.constantFrom('set', 'set', 'set', 'delete', 'clear'), fc.nat(12)), {
  maxLength: 200,
})

test('a bounded map agrees with a list that drops its first entry, after any set, delete and clear', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), steps, (max, sequence) => {
      const map = new BoundedMap<number, number>(max)
      let list: number[] = []
      for (const [step, key] of sequence) {
        if (step === 'clear') map.clear()
        else if (step === 'delete') map.delete(key)
        else map.set(key, -key)
        list = step === 'clear' ? [] : list.filter((one) => one !== key)
        if (step === 'set') list = [...list, key].slice(-max)
        assert.deepEqual([...map.keys()], list)
      }
    }),
    { numRuns: 2000 },
  )
})

test('adding to a full map costs the same at 100,000 entries', () => {
  const map = new BoundedMap<string, number>(100_000)
  inCpuTime(10_000, () => {
    for (let i = 0; i < 1_000_000; i++) map.set(`key ${i}`, i)
  })
  assert.equal(map.size, 100_000)
})

for (const max of [3, 1_000])
  test(`a map of ${max} whose three entries are set again and again keeps no former value`, () => {
    const map = new BoundedMap<number, object>(max)
    const setAgain = () => {
      for (let i = 0; i < 100_000; i++) map.set(i % 3, { i })
    }
    setAgain()
    const beforeBytes = reachableBytes()
    setAgain()
    assert.ok(reachableBytes() - beforeBytes < 500_000, `${reachableBytes() - beforeBytes} bytes`)
    assert.equal(map.size, 3)
  })
