// Mail that waits at a node that delivers nothing: its queue's owner, its claims, and its end. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import type { SubmissionId } from '../../src/base/ids.ts'
import { Db } from '../../src/postgres/db.ts'
import { joinNodes } from '../../src/store/nodes.ts'
import { claimDeliveries, type DeliveryResult, recordResults } from '../../src/store/sending/deliveries.ts'
import { RoundRobin } from '../../src/store/sending/round-robin.ts'
import {
  findAmong,
  findOrphaned,
  reclaimOrphans,
  routeLeases,
  walkQueues,
} from '../../src/store/sending/routes.ts'
import type { DeliveryStatus, SubmissionStatus } from '../../src/store/status.ts'
import type { Submission } from '../support/api.ts'
import { joinAsNode } from '../support/claims.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const sink = await startSink(place)
const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
const node = await startNode(place, { env, roles: ['api'] })
const { db, clock } = node.foundation

/** An organization with an inbox, and an empty queue that never had an owner. */
async function setQueueStage() {
  await db.query('delete from delivery')
  await db.query('update route set owner = null, epoch = 0, paused = false, not_before = null')
  const { api } = await node.createCaller()
  return { api, inbox: await api.createInbox() }
}

const nowhere = { smtp: null, capture: null, mark: null, program: null }

/** Acquires the queues that it finds, either among those named or in a walk through all of them. */
async function acquire(nodeId: number, among: string[] | null = null) {
  const at = new Date()
  const asker = { nodeId, held: [] }
  const find = async () => {
    const { candidates } = await walkQueues(db, asker, at, { from: null, max: 100 })
    return [...candidates, ...(await findOrphaned(db, asker))]
  }
  const found = among ? await findAmong(db.writer, asker, at, among) : await find()
  const keys = found.map(({ key }) => key)
  return await routeLeases.acquire(db.writer, asker, at, keys)
}

function delivered(claim: { submissionId: SubmissionId; position: number }, epoch: number): DeliveryResult {
  const told = { type: 'delivered', at: new Date(), attempt: 1, remote: null, enhancedStatus: null }
  return {
    submissionId: claim.submissionId,
    position: claim.position,
    route: '@relay',
    epoch,
    status: 'delivered',
    dueAt: null,
    response: '250 ok',
    failureCode: null,
    outcome: { ...told, classification: null, queuedAt: null, beganAt: null, conversation: null },
  }
}

test('check 93: a node with a past epoch cannot claim, record, keep or release', async (t) => {
  const { api, inbox } = await setQueueStage()
  const { submission } = await send(api, inbox, ['a@far.test', 'b@far.test'])
  const [first, second] = [await joinAsNode(t, node.foundation), await joinAsNode(t, node.foundation)]
  const [route] = await acquire(first.id)
  assert.deepEqual([route!.key, route!.epoch], ['@relay', 1])
  assert.deepEqual(await acquire(second.id), [])
  assert.deepEqual(await acquire(second.id, ['@relay']), [])
  const claim = (epoch: number, wanted: number) =>
    claimDeliveries(
      db.writer,
      { route: '@relay', epoch, wanted, passedOver: [], rounds: new RoundRobin() },
      new Date(),
    )
  const [claimed] = await claim(1, 1)
  assert.equal(claimed!.attempts, 1)

  // Its lock is released, as after a kill -9.
  await first.leave()
  const taken = (await acquire(second.id))[0]!
  assert.deepEqual([taken.key, taken.epoch], ['@relay', 2])
  assert.equal(await reclaimOrphans(db.writer, taken, new Date()), 1)
  assert.deepEqual(await claim(1, 5), [])
  assert.deepEqual(await recordResults(db.writer, [delivered(claimed!, 1)], new Date()), [false])
  assert.deepEqual(await routeLeases.check(db.writer, first.id, [route!]), [])
  await routeLeases.release(db.writer, first.id, route!)
  assert.equal((await routeLeases.check(db.writer, second.id, [taken])).length, 1)
  await routeLeases.release(db.writer, second.id, { key: '@relay', epoch: 1 })
  assert.equal((await routeLeases.check(db.writer, second.id, [taken])).length, 1)

  const again = await claim(2, 5)
  assert.deepEqual(again.map(({ attempts }) => attempts).sort(), [1, 2])
  const both = again.map((one) => delivered(one, 2))
  assert.deepEqual(await recordResults(db.writer, both, new Date()), [true, true])
  assert.deepEqual(await recordResults(db.writer, both, new Date()), [false, false])
  await untilStates(api, submission.id, 'delivered', 'delivered')
  const { events } = await api.want<{ events: { type: string }[] }>(`/v1/submissions/${submission.id}/events`)
  assert.deepEqual(
    events.map(({ type }) => type),
    ['accepted', 'attempted', 'delivered', 'delivered'],
  )
})

test('check 93: mail that a killed owner left on a paused queue is returned, and can be cancelled', async (t) => {
  const { api, inbox } = await setQueueStage()
  await send(api, inbox, ['a@far.test'])
  const [first, second] = [await joinAsNode(t, node.foundation), await joinAsNode(t, node.foundation)]
  await acquire(first.id)
  const claim = { route: '@relay', epoch: 1, wanted: 5, passedOver: [], rounds: new RoundRobin() }
  await claimDeliveries(db.writer, claim, new Date())
  await db.query('update route set paused = true')
  await first.leave()
  const route = (await acquire(second.id))[0]!
  assert.equal(await reclaimOrphans(db.writer, route, new Date()), 1)
  await routeLeases.release(db.writer, second.id, route)
  assert.deepEqual(await acquire(second.id), [])
})

test('check 96: mail accepted by one node leaves at once through another, though older mail waits for hours', async (t) => {
  const { api, inbox } = await setQueueStage()
  const sender = await startNode(place, { env, roles: ['delivery'] })
  t.after(() => sender.stop())
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 greylisted' : null)
  const waiting = await send(api, inbox, ['slow@far.test'])
  await untilStates(api, waiting.submission.id, 'deferred')
  await db.query(`update delivery set due_at = due_at + interval '6 hours' where status = 'deferred'`)
  sink.rule = () => null
  await until('its line to be closed', () => sink.open === 0)
  const startMs = performance.now()
  const { submission } = await send(api, inbox, ['quick@far.test'])
  await untilStates(api, submission.id, 'delivered')
  assert.ok(performance.now() - startMs < 5_000)
})

test('a node ignores another database’s lock with the same number', async (t) => {
  const { api, inbox } = await setQueueStage()
  await send(api, inbox, ['a@far.test'])
  const [dead, alive] = [await joinAsNode(t, node.foundation), await joinAsNode(t, node.foundation)]
  const there = await makePlace(t)
  const foreign = new Db({ connection: there.connection })
  there.after(() => foreign.close())
  await foreign.query(`select setval('node_id', $1, false)`, [dead.id])
  const namesake = await joinNodes(foreign, nowhere, new Date())
  there.after(() => namesake.leave())
  assert.equal(namesake.id, dead.id)
  assert.equal((await acquire(dead.id)).length, 1)
  await dead.leave()
  assert.equal((await acquire(alive.id))[0]!.epoch, 2)
})

test('check 46: an address suppressed while a claim waits for its queue is not attempted', async (t) => {
  const { api, inbox } = await setQueueStage()
  await send(api, inbox, ['gone@far.test'])
  const owner = await joinAsNode(t, node.foundation)
  const [route] = await routeLeases.acquire(db.writer, { nodeId: owner.id, held: [] }, clock.now(), [
    '@relay',
  ])
  const holder = new pg.Client(place.connection)
  await holder.connect()
  t.after(() => holder.end())
  await holder.query('begin')
  await holder.query('select from route where key = $1 for update', [route!.key])
  const claim = {
    route: route!.key,
    epoch: route!.epoch,
    wanted: 5,
    passedOver: [],
    rounds: new RoundRobin(),
  }
  const claiming = claimDeliveries(db.writer, claim, clock.now())
  await untilLocked(db, { saying: 'claim_due' })
  await api.want('/v1/suppressions', { method: 'POST', body: { email: 'gone@far.test' }, status: 201 })
  await holder.query('commit')
  assert.deepEqual(
    (await claiming).map(({ email, isSuppressed }) => [email, isSuppressed]),
    [['gone@far.test', true]],
  )
})

type Ended = Submission & { failureCode: string | null }

test('check 77: mail that returns from the wire during its inbox’s deletion is cancelled too', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const [one, two] = [await send(api, inbox, ['a@far.test']), await send(api, inbox, ['b@far.test'])]
  await db.query('update delivery set claim_epoch = 1 where submission_id = $1', [two.submission.id])
  // The deletion has read both rows and waits for the first one.
  const holder = new pg.Client(place.connection)
  await holder.connect()
  t.after(() => holder.end())
  await holder.query('begin')
  await holder.query('select from delivery where submission_id = $1 for update', [one.submission.id])
  const removed = api.call(`/v1/inboxes/${inbox.id}`, { method: 'DELETE' })
  await untilLocked(db)
  await db.query(`update delivery set claim_epoch = null, status = 'deferred' where submission_id = $1`, [
    two.submission.id,
  ])
  await holder.query('commit')
  assert.equal((await removed).status, 204)
  for (const { submission } of [one, two]) {
    const { status, failureCode } = await api.want<Ended>(`/v1/submissions/${submission.id}`)
    assert.deepEqual([status, failureCode], ['failed', 'inbox_deleted'])
  }
})

const outcomes: [recipients: DeliveryStatus[], status: SubmissionStatus, failureCode: string | null][] = [
  [['delivered'], 'delivered', null],
  [['delivered', 'delivered'], 'delivered', null],
  [['bounced', 'delivered', 'failed'], 'partially_delivered', 'bounced-0'],
  [['delivered', 'suppressed'], 'partially_delivered', 'suppressed-1'],
  [['failed', 'suppressed', 'bounced'], 'failed', 'failed-0'],
  [['suppressed'], 'failed', 'suppressed-0'],
  [['bounced', 'delivered', 'pending'], 'pending', null],
  [['failed', 'deferred'], 'pending', null],
]

test('a submission waits while a recipient waits, and ends with its first failed recipient’s state', async () => {
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox()
  for (const [recipients, status, failureCode] of outcomes) {
    const to = recipients.map((_, i) => `r${i}@far.test`)
    const { id } = (await send(api, inbox, to)).submission
    await db.query(
      `update delivery d set status = s.status, failure_code = case when s.status in ('bounced', 'failed', 'suppressed')
        then s.status || '-' || d.position end
      from unnest($2::text[]) with ordinality s(status, place) where d.submission_id = $1 and d.position = s.place - 1`,
      [id, recipients],
    )
    await db.query(
      'select settle_submissions(array(select f from jsonb_populate_recordset(null::recipient_fact, $1) f), $2)',
      [JSON.stringify([{ submission: id, type: 'attempted', at: clock.now(), id }]), clock.now()],
    )
    const ended = await api.want<Ended>(`/v1/submissions/${id}`)
    assert.deepEqual([ended.status, ended.failureCode], [status, failureCode], recipients.join())
  }
  const gaps = await db.query(
    `select from submission s where organization_id = $1
      and event_seq <> (select count(*) from event e where e.submission_id = s.id)`,
    [organizationId],
  )
  assert.equal(gaps.length, 0)
})
