// A destination's queue: what proves that its way is free, and what proves nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { type Carried, RouteWorker } from './route-worker.ts'

const free: Carried = { fault: null, decided: false, tried: true }
const untried: Carried = { fault: null, decided: false, tried: false }
const fault = { text: 'gone', classification: 'network' as const }

/** A queue that has failed before, with a job for each answer; tells whether it took its way for free, and when. */
async function runQueue(answers: Carried[]) {
  const clock = new Clock()
  const told: string[] = []
  let left = answers.length
  const line = { usable: true, quit: async () => {}, destroy: () => {} }
  const worker: RouteWorker<number> = new RouteWorker<number>({
    route: { key: 'far.test', epoch: 1, paused: false, failures: 2, notBefore: null, lastFault: 'gone' },
    ...{ maxLines: 1, lingerMs: 0, retryScheduleMs: [60_000], clock, log: silentLog },
    verbs: {
      open: async () => ({ line }),
      claim: async () => (left-- > 0 ? [answers.length - left - 1] : []),
      organizationOf: () => 'ada',
      carry: async (_line, job) => {
        if (job > 0) told.push(worker.isOpening ? 'opening' : 'open')
        return answers[job]!
      },
      giveBack: () => {},
      nextDue: async () => (left > 0 ? new Date(clock.nowMs() - 1) : null),
      noteFault: async (failures) => void told.push(`fault ${failures}`),
      clearFault: async () => void told.push('clear'),
      recorded: async () => {},
    },
  })
  await worker.run()
  return { told, isOpening: worker.isOpening }
}

test('route worker: what was not tried is neither a fault of the way nor a proof that it is free', async () => {
  assert.deepEqual(await runQueue([untried, untried]), { told: ['opening'], isOpening: true })
  assert.deepEqual(await runQueue([untried, free, untried]), {
    told: ['opening', 'clear', 'open'],
    isOpening: false,
  })
  assert.deepEqual(await runQueue([untried, { ...free, fault }]), {
    told: ['opening', 'fault 3'],
    isOpening: true,
  })
})

test('route worker: what was decided before the connection was lost proves the way free', async () => {
  assert.deepEqual(await runQueue([{ fault, decided: true, tried: true }]), {
    told: ['clear'],
    isOpening: true,
  })
})
