// Batches that gather: the first row leaves at once, what comes soon after leaves together.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Batch } from './batch.ts'

test('where a batch gathers, the first row leaves at once and all that follow leave together', async () => {
  const flown: number[][] = []
  const flush = async (rows: number[]) => {
    flown.push(rows)
    return rows
  }
  const batch = new Batch({ name: 'test', flush, gatherMs: 1_000 })
  assert.equal(await batch.add(1), 1)
  const later = [batch.add(2)]
  await new Promise((resolve) => setImmediate(resolve))
  later.push(batch.add(3))
  assert.deepEqual(flown, [[1]])
  assert.deepEqual(await Promise.all(later), [2, 3])
  assert.deepEqual(flown, [[1], [2, 3]])
  await batch.drained()
})

test('what does not fit into a gathered batch leaves with the next one', async () => {
  const flown: number[][] = []
  const flush = async (rows: number[]) => {
    flown.push(rows)
    return rows
  }
  const batch = new Batch({ name: 'test', flush, gatherMs: 5, maxRows: 2 })
  await Promise.all([1, 2, 3, 4, 5].map((row) => batch.add(row)))
  assert.deepEqual(flown, [[1, 2], [3, 4], [5]])
})
