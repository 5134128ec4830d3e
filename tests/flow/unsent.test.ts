// Mail that waits at a node that delivers nothing: what a claim, a deletion and the states in SQL make of it. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import pg from 'pg'
import { recipientMoves, submissionStatusOf } from '../../src/flow/states.ts'
import { claimDeliveries } from '../../src/store/sending/deliveries.ts'
import { RoundRobin } from '../../src/store/sending/round-robin.ts'
import { routeLeases } from '../../src/store/sending/routes.ts'
import type { DeliveryStatus } from '../../src/store/status.ts'
import type { Submission } from '../support/api.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode } from '../support/node.ts'

const place = await makePlace({ after })
const node = await startNode(place, { roles: ['api'] })
const { db, clock } = node.foundation

// First: the claim finds no other mail.
test('check 46: what is suppressed while a claim waits for its queue is not attempted', async (t) => {
  const { api } = await node.createCaller()
  await send(api, await api.createInbox(), ['gone@far.test'])
  const owner = { nodeId: 1, leaseMs: 60_000 }
  const [route] = await routeLeases.acquire(db.writer, owner, clock.now(), ['@capture'])
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

test('check 77: what comes back from the wire while its inbox is being deleted is cancelled with the rest', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const [one, two] = [await send(api, inbox, ['a@far.test']), await send(api, inbox, ['b@far.test'])]
  await db.query('update delivery set claim_epoch = 1 where submission_id = $1', [two.submission.id])
  // The deletion has looked, and waits for the first of the two.
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

const statuses = Object.keys(recipientMoves) as DeliveryStatus[]

test('settle_submissions agrees with submissionStatusOf', async () => {
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox()
  const sizes = [1, 2, 3, 4, 5]
  const bySize = await Promise.all(
    sizes.map(async (size) => {
      const to = Array.from({ length: size }, (_, i) => `r${i}@far.test`)
      return (await send(api, inbox, to)).submission.id
    }),
  )
  const states = fc.array(fc.constantFrom(...statuses), { minLength: 1, maxLength: sizes.length })
  await fc.assert(
    fc.asyncProperty(states, async (recipients) => {
      const id = bySize[recipients.length - 1]!
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
      const [row] = await db.query<{ status: string; code: string | null }>(
        'select status, failure_code as code from submission where id = $1',
        [id],
      )
      assert.equal(row!.status, submissionStatusOf(recipients))
      const first = recipients.findIndex((status) => ['bounced', 'failed', 'suppressed'].includes(status))
      const code = row!.status === 'pending' || first < 0 ? null : `${recipients[first]}-${first}`
      assert.equal(row!.code, code)
    }),
    { numRuns: 150 },
  )
  const gaps = await db.query(
    `select from submission s where organization_id = $1
      and event_seq <> (select count(*) from event e where e.submission_id = s.id)`,
    [organizationId],
  )
  assert.equal(gaps.length, 0)
})
