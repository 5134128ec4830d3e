// Batches: when they are flushed, how failures reach their rows, and how many rows may wait.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Batch, BatchFull } from './batch.ts'

test('with a minimum interval the first row leaves at once and later rows leave together', async () => {
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

test('every waiting row leaves, whenever the interval ends during a flush', async (t) => {
  for (let stepMs = 0.5; stepMs < 10; stepMs += 0.5) {
    let nowMs = 0
    t.mock.method(performance, 'now', () => (nowMs += stepMs))
    const batch = new Batch({ name: 'test', flush: async (rows: number[]) => rows, minIntervalMs: 10 })
    const rows = [batch.add(1)]
    await new Promise((resolve) => setImmediate(resolve))
    rows.push(batch.add(2))
    const done = await Promise.race([Promise.all(rows), sleep(1_000, 'left waiting')])
    assert.deepEqual(done, [1, 2], `with ${stepMs} ms from one look at the clock to the next`)
    t.mock.restoreAll()
  }
})

test('rows that exceed a batch leave with the next batch', async () => {
  const flushed: number[][] = []
  const flush = async (rows: number[]) => {
    flushed.push(rows)
    return rows
  }
  const batch = new Batch({ name: 'test', flush, minIntervalMs: 5, maxRows: 2 })
  await Promise.all([1, 2, 3, 4, 5].map((row) => batch.add(row)))
  assert.deepEqual(flushed, [[1, 2], [3, 4], [5]])
})

test('a failed flush rejects its own rows, and a missing result rejects the row without one', async () => {
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

test('a batch refuses rows past its waiting bounds, but always takes a row alone', async () => {
  const options = { sizeOf: (row: number) => row, maxWaitingRows: 2, maxWaitingBytes: 10 }
  const batch = new Batch({ name: 'test', flush: async (rows: number[]) => rows, ...options })
  const alone = batch.add(11)
  await assert.rejects(batch.add(1), BatchFull)
  assert.equal(await alone, 11)
  const two = [batch.add(1), batch.add(1)]
  await assert.rejects(batch.add(1), BatchFull)
  assert.deepEqual(await Promise.all(two), [1, 1])
})
