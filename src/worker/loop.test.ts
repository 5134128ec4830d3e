// A loop that lets others go first: for how long, and from when.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { until } from '../../tests/support/until.ts'
import { silentLog } from '../base/log.ts'
import { Loop } from './loop.ts'

/** A loop with one thing to do a wake, and what it did: `run` it, or `ask` whether others come first. */
function startLoop(t: TestContext, { now, maxMs }: { now(): boolean; maxMs: number }) {
  const seen: string[] = []
  const asked = () => {
    seen.push('ask')
    return now()
  }
  const run = async () => {
    seen.push('run')
    return false
  }
  const yields = { now: asked, everyMs: 1, maxMs }
  const loop = new Loop({ name: 'test', run, intervalMs: 3_600_000, collectMs: 1, yields, log: silentLog })
  loop.start()
  t.after(() => loop.stop())
  return { seen, loop }
}

const runs = (seen: string[]) => seen.filter((what) => what === 'run').length

test('loop: it gives way while it is asked to, and then runs', async (t) => {
  let left = 5
  const { seen, loop } = startLoop(t, { now: () => left-- > 0, maxMs: 3_600_000 })
  loop.wake()
  await until('it to run again', () => runs(seen) === 2)
  assert.deepEqual(seen.slice(0, 8), ['run', 'ask', 'ask', 'ask', 'ask', 'ask', 'ask', 'run'])
})

test('loop: it gives way without end for no longer than it may', async (t) => {
  const { seen, loop } = startLoop(t, { now: () => true, maxMs: 3 })
  loop.wake()
  await until('it to run again', () => runs(seen) === 2)
  const again = seen.indexOf('run', 1)
  assert.ok(seen[1] === 'ask' && again <= 4, seen.join(' '))
})

test('loop: where there is more it gives way within the time that is left, and goes on', async (t) => {
  const seen: string[] = []
  const run = async () => seen.push('run') < 7
  const now = () => {
    seen.push('ask')
    return true
  }
  const yields = { now, everyMs: 1, maxMs: 2 }
  const loop = new Loop({ name: 'test', run, intervalMs: 1, collectMs: 1, yields, log: silentLog })
  loop.start()
  t.after(() => loop.stop())
  await until('the second round', () => seen.length >= 8)
  // There was no time to give away before the first round was over.
  assert.deepEqual(seen.slice(0, 8), [...Array<string>(7).fill('run'), 'ask'])
})

test('loop: it is stopped while it gives way', async (t) => {
  const { seen, loop } = startLoop(t, { now: () => true, maxMs: 3_600_000 })
  await until('it to give way', () => seen.includes('ask'))
  await loop.stop()
  assert.equal(runs(seen), 1)
})
