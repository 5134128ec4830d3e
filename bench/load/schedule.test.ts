// Units of the schedules: the number of turns, their due times, and the latencies computed from them.
import assert from 'node:assert/strict'
import test from 'node:test'
import { latencyOf, Turns } from './schedule.ts'

test('a counted load yields that many starts, each due when it is taken', () => {
  const turns = new Turns({ count: 2 })
  const beforeMs = performance.now()
  const [first, second, third] = [turns.take(), turns.take(), turns.take()]
  assert.deepEqual([first?.number, second?.number, third], [0, 1, null])
  assert.ok(first!.dueAtMs >= beforeMs && first!.dueAtMs <= performance.now())
})

test('a load of fixed rate yields starts at even intervals, and none after its end', () => {
  const turns = new Turns({ perSecond: 100, durationMs: 10_000 })
  const dues: number[] = []
  for (let turn = turns.take(); turn; turn = turns.take()) dues.push(turn.dueAtMs)
  assert.equal(dues.length, 1_000)
  assert.ok(Math.abs(dues.at(-1)! - dues[0]! - 9_990) < 0.001)
})

test('a start that is due but not begun by the end is left out', () => {
  const turns = new Turns({ perSecond: 1_000, durationMs: 20 })
  const first = turns.take()
  while (performance.now() < first!.dueAtMs + 21);
  assert.equal(turns.take(), null)
})

test('a load without an end is refused', () => {
  assert.throws(() => new Turns({ perSecond: 1 }), /without an end/)
})

test('latencies are reported as percentiles, and as 0 without a sample', () => {
  const timesMs = Array.from({ length: 100 }, (_, time) => 100 - time)
  assert.deepEqual(latencyOf(timesMs), { p50: 51, p95: 96, p99: 100 })
  assert.deepEqual(latencyOf([]), { p50: 0, p95: 0, p99: 0 })
})
