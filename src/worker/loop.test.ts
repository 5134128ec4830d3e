// When a loop runs, and how it ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../tests/support/until.ts'
import { silentLog } from '../base/log.ts'
import { Loop } from './loop.ts'

const options = { name: 'test', intervalMs: 3_600_000, log: silentLog }

test('loop: it runs while there is more work, and once more after a wake-up during a run', async (t) => {
  let runs = 0
  const run = async () => {
    runs++
    if (runs === 3) loop.wake()
    return runs < 3
  }
  const loop = new Loop({ ...options, run })
  loop.start()
  t.after(() => loop.stop())
  await until('it to run', () => runs === 4)
  loop.wake()
  await until('it to run again', () => runs === 5)
})

test('loop: it goes on after a failed run', async (t) => {
  let runs = 0
  const run = async () => {
    if (++runs === 1) throw new Error('failed')
    return false
  }
  const loop = new Loop({ ...options, run })
  loop.start()
  t.after(() => loop.stop())
  await until('it to run again', () => runs === 2)
})

test('loop: a stop ends its wait, and waits for a run under way', async () => {
  const [begun, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isOver = false
  const run = async () => {
    begun.resolve()
    await free.promise
    isOver = true
    return false
  }
  const loop = new Loop({ ...options, collectMs: 3_600_000, run })
  loop.start()
  await begun.promise
  const stopped = loop.stop()
  free.resolve()
  await stopped
  assert.ok(isOver)
})
