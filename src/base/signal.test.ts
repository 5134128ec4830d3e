// Waiting for a wake-up: what ends the wait, and that no wake-up is lost.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rest, Signal } from './signal.ts'

const longMs = 3_600_000
const never = new AbortController().signal

test('signal: a wake-up ends the wait, and a wake-up that came before ends one wait', async () => {
  const signal = new Signal()
  const waiting = signal.wait(longMs, never)
  signal.wake()
  await waiting
  signal.wake()
  signal.wake()
  assert.equal(signal.isWoken, true)
  await signal.wait(longMs, never)
  assert.equal(signal.isWoken, false)
  let isOver = false
  const second = signal.wait(longMs, never).then(() => (isOver = true))
  await new Promise(setImmediate)
  assert.equal(isOver, false)
  signal.wake()
  await second
})

test('signal: a timeout or a stop ends the wait, also a stop that came before', async () => {
  const [signal, stop] = [new Signal(), new AbortController()]
  await signal.wait(1, never)
  const waiting = [signal.wait(longMs, stop.signal), rest(longMs, stop.signal)]
  stop.abort()
  await Promise.all(waiting)
  await signal.wait(longMs, stop.signal)
  await rest(longMs, stop.signal)
})

test('signal: clearing removes an earlier wake-up', async () => {
  const signal = new Signal()
  signal.wake()
  signal.clear()
  assert.equal(signal.isWoken, false)
})

test('signal: a wake-up wakes all waiters, or some of them in order of arrival', async () => {
  const signal = new Signal()
  const woken: number[] = []
  const waiting = [1, 2, 3].map((n) => signal.wait(longMs, never).then(() => woken.push(n)))
  signal.wakeSome(1)
  await waiting[0]
  assert.deepEqual([woken, signal.isWoken], [[1], false])
  signal.wake()
  await Promise.all(waiting)
  assert.deepEqual(woken, [1, 2, 3])
})
