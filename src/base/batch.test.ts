// Batches: when they leave, what fails of them, and how much may wait.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Batch, BatchFull } from './batch.ts'

test('with an interval between batches the first row leaves at once and all that follow leave together', async () => {
  const flushed: number[][] = []
  const flush = async (rows: number[]) => {
    flushed.push(rows)
    return rows
  }
  const batch = new Batch({ name: 'test', flush, minIntervalMs: 1_000 })
  assert.equal(await batch.add(1), 1)
  const later = [batch.add(2)]
  await new Promise((resolve) => setImmediate(resolve))
  later.push(batch.add(3))
  assert.deepEqual(flushed, [[1]])
  assert.deepEqual(await Promise.all(later), [2, 3])
  assert.deepEqual(flushed, [[1], [2, 3]])
  await batch.drained()
})

test('what does not fit into a batch leaves with the next one', async () => {
  const flushed: number[][] = []
  const flush = async (rows: number[]) => {
    flushed.push(rows)
    return rows
  }
  const batch = new Batch({ name: 'test', flush, minIntervalMs: 5, maxRows: 2 })
  await Promise.all([1, 2, 3, 4, 5].map((row) => batch.add(row)))
  assert.deepEqual(flushed, [[1, 2], [3, 4], [5]])
})

test('a flush that fails rejects its own rows alone, and one that returns too little what it left out', async () => {
  const flush = async (rows: number[]) => {
    if (rows.includes(1)) throw new Error('gone')
    return rows.slice(0, 1)
  }
  const batch = new Batch({ name: 'test', flush, maxRows: 2 })
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((row) => batch.add(row)))
  const summary = outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as Error).message,
  )
  assert.deepEqual(summary, ['gone', 'gone', 3, 'a batch returned fewer results than it had rows'])
  await batch.drained()
})

test('what is over the bounds of what may wait is refused, a row alone never', async () => {
  const options = { sizeOf: (row: number) => row, maxWaitingRows: 2, maxWaitingBytes: 10 }
  const batch = new Batch({ name: 'test', flush: async (rows: number[]) => rows, ...options })
  const alone = batch.add(11)
  await assert.rejects(batch.add(1), BatchFull)
  assert.equal(await alone, 11)
  const two = [batch.add(1), batch.add(1)]
  await assert.rejects(batch.add(1), BatchFull)
  assert.deepEqual(await Promise.all(two), [1, 1])
})
