// Leases over real rows: which rows are acquired, kept, lost and released, and that hints outlive workers.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { testDatabase } from '../../tests/support/postgres.ts'
import { until } from '../../tests/support/until.ts'
import { Clock } from '../base/clock.ts'
import { Db, DbFault } from '../postgres/db.ts'
import { insertRoutes, type RouteRow, routeLeases } from '../store/sending/routes.ts'
import { LeaseHolder, type LeaseTerms, type LeaseWorker } from './lease-holder.ts'
import type { Membership } from './membership.ts'

/** A worker that does nothing until the test ends it. */
class Idler implements LeaseWorker<RouteRow> {
  readonly route: RouteRow
  readonly terms: LeaseTerms
  readonly calls: string[] = []
  isWoken = false
  #end = () => {}
  #fail = (_: Error) => {}

  constructor(route: RouteRow, terms: LeaseTerms) {
    this.route = route
    this.terms = terms
  }

  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#end = resolve
      this.#fail = reject
    })
  }

  fail(error: Error): void {
    this.#fail(error)
  }

  wake(): void {
    this.calls.push('wake')
    this.isWoken = true
  }

  stop(): void {
    this.calls.push('stop')
    this.#end()
  }

  cut(): void {
    this.calls.push('cut')
    this.#end()
  }
}

async function makeHolder(t: TestContext) {
  const db = new Db({ connection: await testDatabase(t) })
  t.after(() => db.close())
  await insertRoutes(db.writer, ['a.test', 'b.test'], new Date())
  const workers: Idler[] = []
  const lost: (() => void)[] = []
  const lines: Record<string, unknown>[] = []
  const membership = { nodeId: 1, isCertain: true, onLost: (listener: () => void) => lost.push(listener) }
  const holder = new LeaseHolder({
    db,
    clock: new Clock(),
    log: pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) }),
    membership: membership as unknown as Membership,
    source: {
      leases: routeLeases,
      hasMore: () => false,
      find: async ({ hinted }) => {
        const keys = [...hinted]
        hinted.clear()
        return keys
      },
      createWorker: (row, terms) => {
        const worker = new Idler(row, terms)
        workers.push(worker)
        return worker
      },
    },
  })
  holder.start()
  t.after(() => holder.stop(0))
  const ownerOf = async (key: string) =>
    (await db.query<{ owner: number | null }>('select owner from route where key = $1', [key]))[0]!.owner
  return { db, holder, workers, membership, lost, lines, ownerOf }
}

test('lease holder: a hinted lease is taken, reaches the worker, and continues under a new epoch', async (t) => {
  const { holder, workers, ownerOf } = await makeHolder(t)
  holder.wake(['a.test'])
  await until('it to be taken over', () => workers.length === 1)
  assert.equal(workers[0]!.terms.mayFinish(), true)
  assert.equal(await ownerOf('a.test'), 1)
  holder.wake(['a.test'])
  assert.deepEqual(workers[0]!.calls, ['wake'])
  workers[0]!.stop()
  await until('it to be taken over again', () => workers.length === 2)
  assert.equal(workers[0]!.terms.mayFinish(), false)
  assert.deepEqual(
    workers.map(({ route }) => route.epoch),
    [1, 2],
  )
  workers[1]!.stop()
  await until('it to be let go', async () => (await ownerOf('a.test')) === null)
  assert.equal(workers.length, 2)
})

test('lease holder: a worker that lost its lease, or its node, is stopped, and others go on', async (t) => {
  const { db, holder, workers, lost } = await makeHolder(t)
  holder.wake(['a.test', 'b.test'])
  await until('both to be taken over', () => workers.length === 2)
  const [a, b] = workers.toSorted((one, other) => one.route.key.localeCompare(other.route.key))
  await db.query(`update route set epoch = epoch + 1, owner = 2 where key = 'a.test'`)
  await until('a check to find out', () => a!.calls.includes('cut'))
  assert.deepEqual(b!.calls, [])
  for (const listener of lost) listener()
  assert.deepEqual(b!.calls, ['cut'])
})

test('lease holder: an outage reported after the database returned ends without further work', async (t) => {
  const { holder, workers, lines } = await makeHolder(t)
  holder.wake(['a.test'])
  await until('it to be taken over', () => workers.length === 1)
  workers[0]!.fail(new DbFault(Object.assign(new Error('terminated'), { code: '57P01' })))
  await until('the end of the outage', () => lines.length > 1)
  assert.deepEqual(
    lines.map(({ work, msg }) => [work, msg]),
    [
      ['routes', 'unavailable; further failures are counted'],
      ['routes', 'available again'],
    ],
  )
})

test('lease holder: nothing is finished while another node may have taken over', async (t) => {
  const { holder, workers, membership } = await makeHolder(t)
  holder.wake(['a.test'])
  await until('it to be taken over', () => workers.length === 1)
  membership.isCertain = false
  assert.equal(workers[0]!.terms.mayFinish(), false)
  assert.deepEqual(workers[0]!.calls, [])
  membership.isCertain = true
  assert.equal(workers[0]!.terms.mayFinish(), true)
})

test('lease holder: a row whose release failed is acquired anew, and a held one is kept', async (t) => {
  const { db, holder, workers, ownerOf } = await makeHolder(t)
  holder.wake(['a.test', 'b.test'])
  await until('both to be taken over', () => workers.length === 2)
  const [a, b] = workers.toSorted((one, other) => one.route.key.localeCompare(other.route.key))
  await db.query('alter table route rename to hidden')
  a!.stop()
  await until('its release to fail', () => !a!.terms.mayFinish())
  await db.query('alter table hidden rename to route')
  assert.equal(await ownerOf('a.test'), 1)
  holder.wake(['a.test', 'b.test'])
  await until('it to be taken over again', () => workers.length === 3)
  const again = workers[2]!
  assert.deepEqual([again.route.key, again.route.epoch, again.terms.mayFinish()], ['a.test', 2, true])
  assert.deepEqual([b!.calls, b!.terms.mayFinish()], [['wake'], true])
  again.stop()
  await until('it to be let go', async () => (await ownerOf('a.test')) === null)
})
