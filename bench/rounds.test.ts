// Units of the rounds: order, the discarded round, failures, and the figures computed from them.
import assert from 'node:assert/strict'
import test from 'node:test'
import { interleave, LoadSize, pairwiseRatio, spread } from './rounds.ts'

test('contenders alternate, the first round does not count, and a failure ends only its own contender', async () => {
  const order: string[] = []
  const contender = (name: string, failsAt: number) => ({
    name,
    measure: async () => {
      order.push(name)
      const turn = order.filter((seen) => seen === name).length
      if (turn === failsAt) throw new Error('gone')
      return { rate: turn }
    },
  })
  const outcomes = await interleave([contender('A', 0), contender('B', 2)], 2)
  assert.equal(order.join(''), 'ABABA')
  assert.deepEqual(outcomes, [
    { name: 'A', samples: [{ rate: 2 }, { rate: 3 }] },
    { name: 'B', samples: [], absence: 'failed: gone' },
  ])
})

test('spreads show minimum, median and maximum, and ratios compare medians pair by pair', () => {
  assert.deepEqual(spread([3, 1, 2]), { min: 1, median: 2, max: 3 })
  assert.deepEqual(spread([4, 1, 2, 3]), { min: 1, median: 2.5, max: 4 })
  assert.equal(spread([]), null)
  const outcome = (name: string, rates: number[]) => ({ name, samples: rates.map((rate) => ({ rate })) })
  assert.equal(pairwiseRatio(outcome('A', [10, 30, 20]), outcome('B', [5, 10, 1]), 'rate'), 3)
  assert.equal(pairwiseRatio(outcome('A', [10, 30]), outcome('B', [5]), 'rate'), 2)
  assert.equal(pairwiseRatio(outcome('A', [10]), outcome('B', []), 'rate'), null)
  assert.equal(pairwiseRatio(outcome('A', [10]), outcome('B', [0]), 'rate'), null)
})

test('the discarded round alone sets the size of a load', () => {
  const load = new LoadSize({ first: 100, targetMs: 2000, max: 5000 })
  load.observe(500)
  assert.equal(load.count, 400)
  load.observe(1)
  assert.equal(load.count, 400)
  const fast = new LoadSize({ first: 100, targetMs: 2000, max: 5000 })
  fast.observe(1)
  assert.equal(fast.count, 5000)
})
