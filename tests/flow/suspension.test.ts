// The waiting mail of a suspended organization is held; after approval it goes on unless it expires or is cancelled.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newUuid, type SubmissionId } from '../../src/base/ids.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import { type CourierDeps, RouteCourier } from '../../src/flow/delivering/courier.ts'
import type { DeliveryJob } from '../../src/flow/delivering/delivery-job.ts'
import { DeliveryResults } from '../../src/flow/delivering/delivery-results.ts'
import { cancelOrganization } from '../../src/flow/delivering/end-deliveries.ts'
import { Shaper } from '../../src/flow/delivering/shaper.ts'
import { builtInRules } from '../../src/flow/delivering/shaping-rules.ts'
import { listQueues } from '../../src/store/sending/routes.ts'
import type { Acceptance, Api, Inbox } from '../support/api.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

interface Tenant {
  id: string
  api: Api
  inbox: Inbox
}

const queued = 60

const place = await makePlace({ after })
const sink = await startSink(place)
const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_RETRY_SCHEDULE: '1s' }
const { foundation, createCaller } = await startNode(place, { env })
const { db, clock } = foundation

async function addTenant(): Promise<Tenant> {
  const { api, organizationId } = await createCaller()
  return { id: organizationId, api, inbox: await api.createInbox() }
}

/** The copies delivered to the domain. */
const sentTo = (domain: string) =>
  sink.copies.filter(({ recipient }) => recipient.endsWith(`@${domain}`)).length

/** Fills a queue with some mail that was deferred and some that was never tried. */
async function fillQueue({ api, inbox }: Tenant, domain: string): Promise<Acceptance[]> {
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 greylisted' : null)
  const tried = await Promise.all(
    Array.from({ length: queued / 2 }, (_, i) => send(api, inbox, [`r${i}@${domain}`])),
  )
  for (const { submission } of tried) await untilStates(api, submission.id, 'deferred')
  await db.query('update route set paused = true')
  await until('the queue to be let go', async () => (await listQueues(db, '@relay'))[0]!.owner === null)
  const untried = Array.from({ length: queued / 2 }, (_, i) => send(api, inbox, [`s${i}@${domain}`]))
  const all = [...tried, ...(await Promise.all(untried))]
  sink.rule = () => null
  return all
}

const resume = () => db.query('update route set paused = false')
const suspend = ({ id }: Tenant) => changeOrganizationStatus(foundation, id, 'suspended')
const approve = ({ id }: Tenant) => changeOrganizationStatus(foundation, id, 'active')

async function deliver({ api, inbox }: Tenant, to: string): Promise<void> {
  const { submission } = await send(api, inbox, [to])
  await untilStates(api, submission.id, 'delivered')
}

test('hostile 10: a suspended organization’s mail is held, delays no one, and goes on after approval', async () => {
  const [held, other] = [await addTenant(), await addTenant()]
  const sent = await fillQueue(held, 'approved.test')
  await suspend(held)
  await resume()
  clock.advance(60_000)
  await deliver(other, 'someone@free.test')
  await deliver(other, 'other@free.test')
  // Nothing is due, so no node acquires the queue repeatedly.
  const epochOf = async () => {
    const [route] = await listQueues(db, '@relay')
    return route!.owner === null ? route!.epoch : null
  }
  const epoch = await until('the queue to be let go', epochOf)
  const startMs = performance.now()
  await until('it to have had its time', () => performance.now() - startMs > 2_500)
  assert.equal(await epochOf(), epoch)
  assert.equal(sentTo('approved.test'), 0)

  await approve(held)
  const approvedMs = performance.now()
  await until('the first to arrive', () => sentTo('approved.test') > 0)
  assert.ok(performance.now() - approvedMs < 5_000)
  for (const { submission } of sent) await untilStates(held.api, submission.id, 'delivered')
  assert.equal(sentTo('approved.test'), queued)
})

test('hostile 10: claimed mail that waits for a connection is held as well', async () => {
  const slow = Promise.withResolvers<string | null>()
  let taken = 0
  sink.rule = ({ stage }) => (stage === 'message' ? (taken++ < 15 ? slow.promise : null) : null)
  const held = await addTenant()
  const sent = await Promise.all(
    Array.from({ length: queued }, (_, i) => send(held.api, held.inbox, [`r${i}@claimed.test`])),
  )
  await until('its connections to be taken', () => taken >= 15)
  await suspend(held)
  slow.resolve(null)
  await until('the queue to be let go', async () => (await listQueues(db, '@relay'))[0]!.owner === null)
  assert.equal(sentTo('claimed.test'), 15)
  await approve(held)
  for (const { submission } of sent) await untilStates(held.api, submission.id, 'delivered')
  assert.equal(sentTo('claimed.test'), queued)
})

test('held mail, and mail that may not leave, is not tried, and says nothing about the route', async () => {
  const [held, other] = [await addTenant(), await addTenant()]
  await suspend(held)
  const identities = { of: async () => 'unproved' }
  const results = new DeliveryResults({ ...foundation, wake: () => {} })
  const shaper = new Shaper({ ...foundation, rules: builtInRules, node: { nodeId: null, hasOthers: false } })
  const listAddresses = async () => [`${sink.host}:${sink.port}`]
  const nextHop = { ehloName: 'own.test', ownEhloName: () => 'own.test', listAddresses }
  const deps = { ...foundation, retryScheduleMs: [60_000], identities, results, shaper, nextHop }
  const courier = new RouteCourier(
    deps as unknown as CourierDeps,
    { key: '@local', epoch: 1, asked: [], failures: 0, lastFaultAt: null },
    () => true,
    null,
  )
  const { signal } = new AbortController()
  const opened = await courier.open(signal)
  assert.ok('connection' in opened, JSON.stringify(opened))
  const { connection } = opened
  const jobOf = ({ id }: Tenant) => {
    const submissionId = newUuid() as SubmissionId
    const dates = { queuedAt: new Date(), expiresAt: new Date() }
    const delivery = {
      submissionId,
      position: 0,
      organizationId: id,
      email: 'a@far.test',
      attempts: 1,
      ...dates,
    }
    const content = { submissionId, sender: { email: 'b@unproved.test' }, createdAt: new Date() }
    return { route: '@local', epoch: 1, content, deliveries: [delivery] } as unknown as DeliveryJob
  }
  const untried = { fault: null, isDecided: false, wasTried: false }
  assert.deepEqual(await courier.carry(connection, jobOf(held), 2_000), untried)
  assert.deepEqual(await courier.carry(connection, jobOf(other), 0), untried)
  await courier.close(connection, signal)
  await courier.recorded()
})

// Runs last, because it moves the clock by days.
test('hostile 10: held mail expires in its time, and operators can cancel it', async () => {
  const [first, second, other] = [await addTenant(), await addTenant(), await addTenant()]
  const expired = await fillQueue(first, 'expired.test')
  await suspend(first)
  clock.advance(73 * 3_600_000)
  await until('all to be ended', async () => {
    const [row] = await db.query<{ count: number }>(
      `select count(*) from delivery where organization_id = $1 and status = 'failed'`,
      [first.id],
    )
    return row!.count === queued
  })
  await approve(first)
  const codes = expired.map(async ({ submission }) => {
    const ended = await untilStates(first.api, submission.id, 'failed')
    return (ended as typeof ended & { failureCode: string }).failureCode
  })
  assert.deepEqual(new Set(await Promise.all(codes)), new Set(['soft_bounce_expired']))

  await resume()
  const cancelled = await fillQueue(second, 'cancelled.test')
  const kept = await send(other.api, other.inbox, ['kept@free.test'])
  await suspend(second)
  assert.equal(await cancelOrganization(foundation, second.id), queued)
  assert.equal(await cancelOrganization(foundation, second.id), 0)
  await approve(second)
  for (const { submission } of cancelled) {
    await untilStates(second.api, submission.id, 'failed')
    const path = `/v1/submissions/${submission.id}/events?limit=100`
    const { events } = await second.api.want<{ events: { type: string }[] }>(path)
    assert.equal(events.at(-1)!.type, 'cancelled')
  }
  await resume()
  clock.advance(60_000)
  await untilStates(other.api, kept.submission.id, 'delivered')
  assert.deepEqual(['expired.test', 'cancelled.test'].map(sentTo), [0, 0])
  const unknown = '00000000-0000-7000-8000-000000000000'
  await assert.rejects(cancelOrganization(foundation, unknown), { code: 'not_found' })
})
