// How much one asker may run at the same time, who is next, and who is refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShareLimit } from './share-limit.ts'

const longMs = 60_000

/** Enters `times` times. Returns the outcome of each so far. */
function enterTimes(limit: ShareLimit, asker: string, times: number, waitMs = longMs): (boolean | null)[] {
  const entered: (boolean | null)[] = Array.from({ length: times }, () => null)
  for (const index of entered.keys()) void limit.enter(asker, waitMs).then((may) => (entered[index] = may))
  return entered
}
const settled = () => new Promise(setImmediate)
const count = (entered: (boolean | null)[], what: boolean | null) =>
  entered.filter((may) => may === what).length

test('one asker alone gets a third, and a second asker starts at once', async () => {
  const limit = new ShareLimit({ max: 30, maxWaiting: 300 })
  const [much, little] = [enterTimes(limit, 'much', 50), enterTimes(limit, 'little', 3)]
  await settled()
  assert.deepEqual([count(much, true), count(little, true)], [10, 3])
  for (const _ of Array.from({ length: 10 })) limit.leave('much')
  await settled()
  assert.equal(count(much, true), 19)
  while (count(much, null) > 0) {
    for (const _ of Array.from({ length: 9 })) limit.leave('much')
    await settled()
  }
  assert.equal(count(much, true), 50)
})

test('waiting askers are admitted round robin', async () => {
  const limit = new ShareLimit({ max: 3, maxWaiting: 100 })
  const askers = ['a', 'b', 'c', 'd', 'e', 'f']
  const all = askers.map((asker) => enterTimes(limit, asker, 3))
  const counts = () => all.map((entered) => count(entered, true)).join(' ')
  const rounds: string[] = []
  let left = [0, 0, 0, 0, 0, 0]
  for (let round = 0; round < 6; round++) {
    await settled()
    rounds.push(counts())
    const begun = all.map((entered) => count(entered, true))
    for (const [index, asker] of askers.entries())
      for (let done = left[index]!; done < begun[index]!; done++) limit.leave(asker)
    left = begun
  }
  assert.deepEqual(rounds, [
    '1 1 1 0 0 0',
    '2 2 2 0 0 0',
    '2 2 2 1 1 1',
    '3 3 3 1 1 1',
    '3 3 3 2 2 2',
    '3 3 3 3 3 3',
  ])
})

test('an asker whose wait times out is refused, and blocks no other', async () => {
  const limit = new ShareLimit({ max: 1, maxWaiting: 10 })
  assert.ok(await limit.enter('a', longMs))
  assert.equal(await limit.enter('b', 5), false)
  const next = limit.enter('c', longMs)
  limit.leave('a')
  assert.equal(await next, true)
})

test('a full queue refuses at once, and refuses the asker with many waiting before the one with few', async () => {
  const limit = new ShareLimit({ max: 1, maxWaiting: 30 })
  assert.ok(await limit.enter('first', longMs))
  const much = enterTimes(limit, 'much', 50, 200)
  const little = enterTimes(limit, 'little', 3, 200)
  await settled()
  assert.deepEqual([count(much, false), count(little, null)], [40, 3])
})
