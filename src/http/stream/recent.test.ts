// What is shared, what is made again, and what goes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Recent } from './recent.ts'

/** A shelf of texts, each as heavy as it is long, and what was made for it. */
function makeShelf(limits: { maxAgeMs: number; maxWeight: number }) {
  const made: string[] = []
  const recent = new Recent<string>({ ...limits, weigh: (text) => text.length })
  const get = (key: string) =>
    recent.get(key, async () => {
      made.push(key)
      if (key === 'fault') throw new Error('not to be made')
      return key
    })
  return { made, get }
}

const long = Number.POSITIVE_INFINITY

test('recent: what is being made or was made a moment ago is made once', async () => {
  const { made, get } = makeShelf({ maxAgeMs: long, maxWeight: 100 })
  assert.deepEqual(await Promise.all([get('a'), get('a'), get('b')]), ['a', 'a', 'b'])
  await get('a')
  assert.deepEqual(made, ['a', 'b'])
})

test('recent: what is too old is made again', async () => {
  const { made, get } = makeShelf({ maxAgeMs: 0, maxWeight: 100 })
  await get('a')
  await get('a')
  assert.deepEqual(made, ['a', 'a'])
})

test('recent: what is too heavy together goes, the oldest first', async () => {
  const { made, get } = makeShelf({ maxAgeMs: long, maxWeight: 6 })
  for (const key of ['aaa', 'bbb', 'c', 'bbb', 'c', 'aaa']) await get(key)
  assert.deepEqual(made, ['aaa', 'bbb', 'c', 'aaa'])
})

test('recent: a failure is told to those who wait for it and is not kept', async () => {
  const { made, get } = makeShelf({ maxAgeMs: long, maxWeight: 100 })
  const [first, second] = await Promise.allSettled([get('fault'), get('fault')])
  assert.deepEqual([first.status, second.status], ['rejected', 'rejected'])
  await assert.rejects(get('fault'))
  assert.deepEqual(made, ['fault', 'fault'])
})
