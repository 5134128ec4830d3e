// A destination's queue: what proves that its way is free, and what proves nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { type Carried, RouteWorker } from './route-worker.ts'

const free: Carried = { fault: null, decided: false, tried: true }
const untried: Carried = { fault: null, decided: false, tried: false }
const fault = { text: 'gone', classification: 'network' as const }

/** A queue that has failed before, with a job for each outcome; returns what was noted of its way, and when. */
async function runQueue(outcomes: Carried[]) {
  const clock = new Clock()
  const noted: string[] = []
  let left = outcomes.length
  const connection = { usable: true, quit: async () => {}, destroy: () => {} }
  const worker: RouteWorker<number> = new RouteWorker<number>({
    route: { key: 'far.test', epoch: 1, paused: false, failures: 2, notBefore: null, lastFault: 'gone' },
    ...{ maxConnections: 1, idleTimeoutMs: 0, retryScheduleMs: [60_000], clock, log: silentLog },
    verbs: {
      open: async () => ({ connection }),
      claim: async () => (left-- > 0 ? [outcomes.length - left - 1] : []),
      organizationOf: () => 'ada',
      carry: async (_connection, job) => {
        if (job > 0) noted.push(worker.isOpening ? 'opening' : 'open')
        return outcomes[job]!
      },
      giveBack: () => {},
      nextDue: async () => (left > 0 ? new Date(clock.nowMs() - 1) : null),
      noteFault: async (failures) => void noted.push(`fault ${failures}`),
      clearFault: async () => void noted.push('clear'),
      recorded: async () => {},
    },
  })
  await worker.run()
  return { noted, isOpening: worker.isOpening }
}

test('route worker: what was not tried is neither a fault of the way nor a proof that it is free', async () => {
  assert.deepEqual(await runQueue([untried, untried]), { noted: ['opening'], isOpening: true })
  assert.deepEqual(await runQueue([untried, free, untried]), {
    noted: ['opening', 'clear', 'open'],
    isOpening: false,
  })
  assert.deepEqual(await runQueue([untried, { ...free, fault }]), {
    noted: ['opening', 'fault 3'],
    isOpening: true,
  })
})

test('route worker: what was decided before the connection was lost proves the way free', async () => {
  assert.deepEqual(await runQueue([{ fault, decided: true, tried: true }]), {
    noted: ['clear'],
    isOpening: true,
  })
})
