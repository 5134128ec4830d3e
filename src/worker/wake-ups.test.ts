// Who rests is woken in time, and no wake-up is missed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WakeUps } from './wake-ups.ts'

const hourMs = 3_600_000

test('wake-ups: all who rest are woken, and who polled before it does not rest', async () => {
  const wakeUps = new WakeUps()
  const polled = wakeUps.count
  const resting = [wakeUps.rest(hourMs, polled), wakeUps.rest(hourMs, polled)]
  wakeUps.wake()
  await Promise.all(resting)
  await wakeUps.rest(hourMs, polled)
})

test('wake-ups: some are woken in the order in which they came, and the others rest on', async () => {
  const wakeUps = new WakeUps()
  const woken: number[] = []
  const resting = [1, 2, 3].map((n) => wakeUps.rest(hourMs, wakeUps.count).then(() => woken.push(n)))
  wakeUps.wakeSome(2)
  await Promise.all(resting.slice(0, 2))
  assert.deepEqual(woken, [1, 2])
  assert.equal(wakeUps.count, 0)
  wakeUps.wake()
  await Promise.all(resting)
})

test('wake-ups: a rest ends by itself', async () => {
  const wakeUps = new WakeUps()
  await wakeUps.rest(1, wakeUps.count)
  assert.equal(wakeUps.count, 0)
})
