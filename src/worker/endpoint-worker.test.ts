// One endpoint’s calls: none start after its worker was stopped, and their number keeps within the node's budget.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../tests/support/until.ts'
import type { Clock } from '../base/clock.ts'
import { CallBudget, EndpointWorker } from './endpoint-worker.ts'

const clock = { nowMs: () => Date.now() } as Clock

/** A worker of an endpoint with endless calls. `answer` answers them. */
function makeWorker(budget: CallBudget, calling: Set<() => void>) {
  let n = 0
  const verbs = {
    claim: async (limit: number) => {
      await new Promise(setImmediate)
      return Array.from({ length: limit }, () => ({ id: `${n++}` }))
    },
    call: async () => {
      await new Promise<void>((resolve) => calling.add(resolve))
      return { hasWorked: true, tookMs: 1, recorded: Promise.resolve(true) }
    },
    nextDue: async () => null,
  }
  const onError = (error: unknown) => assert.fail(String(error))
  return new EndpointWorker({ verbs, clock, budget, idleMs: 0, onError })
}

function answer(calling: Set<() => void>): void {
  for (const end of calling) end()
  calling.clear()
}

test('endpoint worker: a stopped worker calls no endpoint, not even for a claim under way', async () => {
  const calling = new Set<() => void>()
  const worker = makeWorker(new CallBudget({ calls: 8, slowCalls: 4 }), calling)
  const running = worker.run()
  worker.cut()
  await running
  assert.equal(calling.size, 0)
})

test('endpoint worker: concurrent claims share the node’s remaining capacity', async () => {
  const calling = new Set<() => void>()
  const budget = new CallBudget({ calls: 100, slowCalls: 50 })
  const workers = Array.from({ length: 20 }, () => makeWorker(budget, calling))
  const running = workers.map((worker) => worker.run())
  // Two of them take the whole budget. Each of the others still has its two calls.
  const most = 100 + 18 * 2
  await until('all to have looked', () => calling.size >= most)
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  assert.equal(calling.size, most)
  for (const worker of workers) worker.stop()
  answer(calling)
  await Promise.all(running)
  assert.equal(budget.leftFor('prompt'), 100)
})
