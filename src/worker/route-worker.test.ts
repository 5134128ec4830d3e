// A destination's queue: which results prove that its route is free, and which prove nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Clock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { type Carried, RouteWorker } from './route-worker.ts'

const free: Carried = { fault: null, isDecided: false, wasTried: true }
const untried: Carried = { fault: null, isDecided: false, wasTried: false }
const fault = { text: 'gone', classification: 'network' as const, asked: [], hasUnasked: false }
const route = { key: 'far.test', epoch: 1, paused: false, notBefore: null, lastFaultAt: null, asked: [] }

type Admission = 'go' | 'over' | { heldUntilMs: number }

/** Runs a queue that has failed before, with a job for each outcome. Returns the calls of `noteFault` and `clearFault`. */
async function runQueue(outcomes: Carried[], carryMs = 0, admissions: Admission[] = []) {
  let opened = 0
  const clock = new Clock()
  const noted: string[] = []
  let left = outcomes.length
  const connection = { isUsable: true, quit: async () => {}, destroy: () => {} }
  const worker: RouteWorker<number> = new RouteWorker<number>({
    route: { ...route, failures: 2, lastFault: 'gone' },
    organizationId: null,
    idleMs: 0,
    retryScheduleMs: [60_000],
    clock,
    log: silentLog,
    onOpened: () => {},
    verbs: {
      reclaim: async () => {},
      maxConnections: 1,
      hasRoom: true,
      admit: async () => admissions.shift() ?? 'go',
      close: async () => {},
      noteHold: async (until) => void noted.push(`held for ${until.getTime() - clock.nowMs()} ms`),
      open: async () => {
        opened++
        return { connection }
      },
      claim: async () => (left-- > 0 ? [outcomes.length - left - 1] : []),
      organizationOf: () => 'ada',
      carry: async (_connection, job) => {
        clock.advance(carryMs)
        if (job > 0) noted.push(worker.isOpening ? 'opening' : 'open')
        return outcomes[job]!
      },
      giveBack: (jobs) => {
        for (const job of jobs) noted.push(`back ${job}`)
      },
      nextDue: async () => (left > 0 ? new Date(clock.nowMs() - 1) : null),
      noteFault: async (failures) => void noted.push(`fault ${failures}`),
      clearFault: async () => void noted.push('clear'),
      recorded: async () => {},
    },
  })
  await worker.run()
  return carryMs > 0 ? opened : { noted, isOpening: worker.isOpening }
}

test('route worker: an untried message neither blames the route nor proves it free', async () => {
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

test('route worker: a queue that the limits hold gives its job back and blames no route', async () => {
  const inAMinute = { heldUntilMs: new Clock().nowMs() + 60_000 }
  const { noted, isOpening } = (await runQueue([free, free], 0, [inAMinute])) as {
    noted: string[]
    isOpening: boolean
  }
  assert.match(noted[0]!, /^held for (5\d{4}|60000) ms$/)
  assert.deepEqual([noted.slice(1), isOpening], [['back 0'], true])
})

test('route worker: a busy connection is replaced after five minutes', async () => {
  assert.equal(await runQueue([free, free, free], 90_000), 1)
  assert.equal(await runQueue([free, free, free], 310_000), 3)
})

test('route worker: a result from before the connection was lost proves the route free', async () => {
  assert.deepEqual(await runQueue([{ fault, isDecided: true, wasTried: true }]), {
    noted: ['clear'],
    isOpening: true,
  })
})

test('route worker: an idle connection claims mail that is committed during a claim at once', async () => {
  const clock = new Clock()
  const due = [
    { id: 'long', ms: 120 },
    { id: 'short', ms: 20 },
  ]
  const waits: number[] = []
  let addedMs = 0
  let claims = 0
  const connection = { isUsable: true, quit: async () => {}, destroy: () => {} }
  const worker: RouteWorker<{ id: string; ms: number }> = new RouteWorker<{ id: string; ms: number }>({
    route: { ...route, failures: 0, lastFault: null },
    organizationId: null,
    idleMs: 1_000,
    retryScheduleMs: [60_000],
    clock,
    log: silentLog,
    onOpened: () => {},
    verbs: {
      reclaim: async () => {},
      maxConnections: 2,
      hasRoom: true,
      admit: async () => 'go',
      close: async () => {},
      noteHold: async () => {},
      open: async () => ({ connection }),
      claim: async (wanted) => {
        const seen = due.splice(0, wanted)
        // The long job has ended, and its connection claims, while the other connection is idle.
        if (++claims >= 2 && addedMs === 0 && waits.length === 2) {
          addedMs = performance.now()
          due.push({ id: 'late', ms: 0 })
          setTimeout(() => worker.wake(), 5)
        }
        await sleep(30)
        return seen
      },
      organizationOf: ({ id }) => id,
      carry: async (_connection, { ms }) => {
        await sleep(ms)
        waits.push(performance.now() - addedMs)
        return { fault: null, isDecided: true, wasTried: true }
      },
      giveBack: () => {},
      nextDue: async () => (due.length > 0 ? clock.now() : null),
      noteFault: async () => {},
      clearFault: async () => {},
      recorded: async () => {},
    },
  })
  await worker.run()
  assert.equal(waits.length, 3)
  assert.ok(waits[2]! < 500, `it waited ${waits[2]} ms`)
})

test('route worker: a job that must wait is carried once, even if the database does not take the note', async () => {
  const clock = new Clock()
  const due = ['first', 'second', 'third']
  const carried: string[] = []
  let opened = 0
  let admitted = 0
  const worker = new RouteWorker<string>({
    route: { ...route, failures: 0, lastFault: null },
    organizationId: null,
    idleMs: 0,
    retryScheduleMs: [60_000],
    clock,
    log: silentLog,
    onOpened: () => {},
    verbs: {
      reclaim: async () => {},
      maxConnections: 4,
      get hasRoom() {
        return opened < 2
      },
      admit: async () => (++admitted === 2 ? { heldUntilMs: clock.nowMs() + 60_000 } : 'go'),
      close: async () => {},
      noteHold: async () => {
        throw new Error('the database is gone')
      },
      open: async () => {
        opened++
        return { connection: { isUsable: true, quit: async () => {}, destroy: () => {} } }
      },
      claim: async (wanted) => due.splice(0, wanted),
      organizationOf: (job) => job,
      carry: async (_connection, job) => {
        carried.push(job)
        await sleep(50)
        return free
      },
      giveBack: () => {},
      nextDue: async () => (due.length > 0 ? new Date(clock.nowMs() - 1) : null),
      noteFault: async () => {},
      clearFault: async () => {},
      recorded: async () => {},
    },
  })
  await assert.rejects(worker.run(), /the database is gone/)
  assert.deepEqual(carried.toSorted(), ['first', 'second', 'third'])
})

test('route worker: a server that refuses a further connection is not asked again at once', async () => {
  const clock = new Clock()
  const due = ['long', 'next']
  let opened = 0
  const worker = new RouteWorker<string>({
    route: { ...route, failures: 0, lastFault: null },
    organizationId: null,
    idleMs: 0,
    retryScheduleMs: [60_000],
    clock,
    log: silentLog,
    onOpened: () => {},
    verbs: {
      reclaim: async () => {},
      maxConnections: 4,
      hasRoom: true,
      admit: async () => 'go',
      close: async () => {},
      noteHold: async () => {},
      open: async () =>
        ++opened > 1
          ? { heldUntil: new Date(clock.nowMs() + 60_000) }
          : { connection: { isUsable: true, quit: async () => {}, destroy: () => {} } },
      claim: async (wanted) => due.splice(0, wanted),
      organizationOf: (job) => job,
      carry: async (_connection, job) => {
        await sleep(job === 'long' ? 600 : 0)
        return free
      },
      giveBack: () => {},
      nextDue: async () => (due.length > 0 ? new Date(clock.nowMs() - 1) : null),
      noteFault: async () => {},
      clearFault: async () => {},
      recorded: async () => {},
    },
  })
  await worker.run()
  assert.equal(opened, 2)
})
