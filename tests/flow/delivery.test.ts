// Sends that the far server refuses, stalls or cuts off, followed to their end by the clock. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { cancelQueue, flushQueue, pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { listQueues } from '../../src/store/sending/routes.ts'
import type { Acceptance, Api, Inbox, Submission } from '../support/api.ts'
import { makeFarServers } from '../support/far-servers.ts'
import { makePlace, send, startNode, type TestCaller, untilStates } from '../support/node.ts'
import { type Rule, type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const [minuteMs, hourMs] = [60_000, 3_600_000]

const place = await makePlace({ after })
const far = await makeFarServers(place)
const { dns } = far
const env = { ...far.env, POSTHORN_RETRY_SCHEDULE: '1m,5m,15m,20h' }
const node = await startNode(place, { env })
const { db, clock } = node.foundation

interface Stage {
  domain: string
  sink: Sink
  caller: TestCaller
  api: Api
  inbox: Inbox
}

/** An organization with an inbox, and the domain that receives its mail. */
async function setStage(t: TestContext, rule: Rule): Promise<Stage> {
  const [server, caller] = [await far.start(t, { rule }), await node.createCaller()]
  return { ...server, caller, api: caller.api, inbox: await caller.api.createInbox() }
}

const goAway: Rule = ({ stage }) => (stage === 'banner' ? '554 5.3.2 go away' : null)

interface DeliveryState {
  status: string
  attempts: number
  dueInMs: number
}

async function readDelivery(submissionId: string): Promise<DeliveryState> {
  const [row] = await db.query<{ status: string; attempts: number; due: Date; updated: Date }>(
    `select case when claim_epoch is null then status else 'on the wire' end as status, attempts, due_at as due,
      updated_at as updated from delivery where submission_id = $1`,
    [submissionId],
  )
  const { status, attempts, due, updated } = row!
  return { status, attempts, dueInMs: due.getTime() - updated.getTime() }
}

function untilAttempt(submissionId: string, attempts: number): Promise<DeliveryState> {
  return until(`attempt ${attempts}`, async () => {
    const state = await readDelivery(submissionId)
    return state.attempts === attempts && state.status === 'deferred' ? state : null
  })
}

async function eventTypes({ api }: Stage, submissionId: string): Promise<string[]> {
  const path = `/v1/submissions/${submissionId}/events?limit=100`
  const { events } = await api.want<{ events: { type: string }[] }>(path)
  return events.map(({ type }) => type)
}

test('check 29, 38: a deferred recipient is retried by the schedule until its lifetime ends, then never again', async (t) => {
  let asked = 0
  const stage = await setStage(t, ({ stage }) => {
    if (stage !== 'rcpt') return null
    asked++
    return '450 4.2.1 not now'
  })
  const { domain, api, inbox } = stage
  const { submission } = await send(api, inbox, [`someone@${domain}`])
  const dues: number[] = []
  for (const attempt of [1, 2, 3, 4, 5, 6, 7]) {
    const { dueInMs } = await untilAttempt(submission.id, attempt)
    dues.push(dueInMs)
    assert.equal(asked, attempt)
    clock.advance(dueInMs)
  }
  const steps = [minuteMs, 5 * minuteMs, 15 * minuteMs, 20 * hourMs, 20 * hourMs]
  for (const [index, stepMs] of steps.entries())
    assert.ok(Math.abs(dues[index]! / stepMs - 1) <= 0.11, `step ${index} took ${dues[index]} ms`)
  const ended = await untilStates(api, submission.id, 'failed')
  assert.equal(ended.status, 'failed')
  assert.equal((ended as Submission & { failureCode: string }).failureCode, 'soft_bounce_expired')
  assert.equal(ended.recipients[0]!.response, '450 4.2.1 not now')
  const last = (await eventTypes(stage, submission.id)).slice(-2)
  assert.deepEqual(last, ['deferred', 'failed'])
  clock.advance(48 * hourMs)
  const later = await send(api, inbox, [`other@${domain}`])
  await untilAttempt(later.submission.id, 1)
  assert.equal(asked, 8)
})

test('check 29: each of several recipients ends in its own state', async (t) => {
  const answers: Record<string, string> = {
    gone: '550 5.1.1 no such user',
    busy: '452 4.2.2 mailbox full',
  }
  const rule: Rule = ({ stage, command }) =>
    (stage === 'rcpt' && answers[/<([^@]*)@/.exec(command)![1]!]) || null
  const stage = await setStage(t, rule)
  const [fine, gone, busy] = ['fine', 'gone', 'busy'].map((name) => `${name}@${stage.domain}`)
  const { submission, message } = await send(stage.api, stage.inbox, [fine!, gone!, busy!])
  const seen = await untilStates(stage.api, submission.id, 'delivered', 'bounced', 'deferred')
  assert.equal(seen.status, 'pending')
  assert.deepEqual(seen.recipients.map(({ response }) => response).slice(1), [
    '550 5.1.1 no such user',
    '452 4.2.2 mailbox full',
  ])
  stage.sink.rule = () => null
  clock.advance(2 * minuteMs)
  const ended = await untilStates(stage.api, submission.id, 'delivered', 'bounced', 'delivered')
  assert.equal(ended.status, 'partially_delivered')
  const copies = stage.sink.copiesOf(message.internetMessageId).map(({ recipient }) => recipient)
  assert.deepEqual(copies.sort(), [busy, fine])
})

test('check 30: a connection lost after the dot leads to a retry, and never counts as delivered', async (t) => {
  const stage = await setStage(t, ({ stage }) => (stage === 'message' ? 'cut' : null))
  const { submission, message } = await send(stage.api, stage.inbox, [`someone@${stage.domain}`])
  await untilStates(stage.api, submission.id, 'deferred')
  assert.deepEqual(await eventTypes(stage, submission.id), ['accepted', 'queued', 'attempted', 'deferred'])
  stage.sink.rule = () => null
  clock.advance(2 * minuteMs)
  await untilStates(stage.api, submission.id, 'delivered')
  assert.equal(stage.sink.copiesOf(message.internetMessageId).length, 1)
})

test('check 29: a 421 makes the recipient and its whole destination wait, without further connections', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'mail' ? '421 4.7.0 too much' : null)
  const { domain, sink, api, inbox } = await setStage(t, rule)
  const sent = await Promise.all(Array.from({ length: 80 }, (_, i) => send(api, inbox, [`r${i}@${domain}`])))
  const route = await until('the queue to back off', async () => {
    const [row] = await listQueues(db, domain)
    return row?.notBefore ? row : null
  })
  assert.match(route.lastFault!, /421/)
  await until('the connections to end', () => sink.open === 0)
  const tried = sink.connections
  assert.ok(tried <= 15, `${tried} connections`)
  for (const [stepMs, failures] of [
    [minuteMs, 2],
    [5 * minuteMs, 3],
  ] as const) {
    clock.advance(stepMs * 1.2)
    await untilFailures(domain, failures)
  }
  sink.rule = () => null
  clock.advance(20 * minuteMs)
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
  const [row] = await listQueues(db, domain)
  assert.deepEqual([row!.failures, row!.notBefore, row!.lastFault], [0, null, null])
})

test('check 29: a fault of the connection leaves untried mail pending, without a write, and backs off the queue', async (t) => {
  const { domain, sink, api, inbox } = await setStage(t, goAway)
  const { submission } = await send(api, inbox, [`someone@${domain}`])
  for (const [failures, stepMs] of [
    [1, minuteMs],
    [2, 5 * minuteMs],
    [3, 15 * minuteMs],
  ] as const) {
    const row = await untilFailures(domain, failures)
    const waitMs = row.notBefore!.getTime() - row.lastFaultAt!.getTime()
    assert.ok(Math.abs(waitMs / stepMs - 1) <= 0.11, `failure ${failures}: ${waitMs} ms`)
    if (failures < 3) clock.advance(waitMs)
  }
  const state = await readDelivery(submission.id)
  assert.deepEqual([state.status, state.attempts], ['pending', 0])
  assert.deepEqual(await db.query('select from event where submission_id = $1', [submission.id]), [])
  // A paused queue tries nothing, so no new fault can come between.
  await pauseQueue(node.foundation, domain, 'paused')
  assert.equal(await flushQueue(node.foundation, domain), 1, 'mail that only its queue held back counts')
  assert.equal(await flushQueue(node.foundation, domain), 0)
  const [flushed] = await listQueues(db, domain)
  assert.deepEqual([flushed!.failures, flushed!.lastFault], [0, null], 'a fault of the past is not shown')
  sink.rule = () => null
  await pauseQueue(node.foundation, domain, 'running')
  await untilStates(api, submission.id, 'delivered')
})

interface Event {
  id: string
  type: string
  recipient: string | null
  at: string
  attempt: number | null
  response: string | null
  classification: string | null
}

async function readEvents(api: Api, submissionId: string, query = 'limit=100'): Promise<Event[]> {
  const path = `/v1/submissions/${submissionId}/events?${query}`
  return (await api.want<{ events: Event[] }>(path)).events
}

/** The events as a reader with small pages sees them. */
async function pageThrough(api: Api, submissionId: string, limit: number): Promise<Event[]> {
  const events: Event[] = []
  let cursor = ''
  do {
    const path = `/v1/submissions/${submissionId}/events?limit=${limit}${cursor}`
    const page = await api.want<{ events: Event[]; nextCursor: string | null }>(path)
    events.push(...page.events)
    cursor = page.nextCursor ? `&cursor=${page.nextCursor}` : ''
  } while (cursor !== '')
  return events
}

function untilFailures(route: string, failures: number) {
  return until(`failure ${failures} of ${route}`, async () => {
    const [row] = await listQueues(db, route)
    return row?.failures === failures ? row : null
  })
}

test('a waiting recipient shows the remote’s reply, and ends with it', async (t) => {
  const { domain, sink, api, inbox } = await setStage(t, goAway)
  const [someone, other] = [`someone@${domain}`, `other@${domain}`]
  const { submission } = await send(api, inbox, [someone, other])
  await untilFailures(domain, 1)
  const shown = await api.want<Submission>(`/v1/submissions/${submission.id}`)
  for (const { status, response } of shown.recipients) {
    assert.equal(status, 'pending')
    assert.ok(response!.startsWith(`${domain} [${sink.host}]: `), response!)
    assert.match(response!, / 554 5\.3\.2 go away$/)
  }
  const events = await readEvents(api, submission.id)
  assert.deepEqual(
    events.map(({ type, recipient, attempt, classification }) => [type, recipient, attempt, classification]),
    [
      ['accepted', null, null, null],
      ['deferred', someone, null, 'network'],
      ['deferred', other, null, 'network'],
    ],
  )
  assert.equal(events[1]!.response, shown.recipients[0]!.response)
  assert.match(events[1]!.id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.notEqual(events[1]!.id, events[2]!.id)
  assert.deepEqual(await readEvents(api, submission.id), events)
  // Mail accepted meanwhile waits for the same reason, and its events say so after `accepted`.
  clock.advance(10_000)
  const later = await send(api, inbox, [`later@${domain}`])
  const [accepted, waits] = await readEvents(api, later.submission.id)
  assert.deepEqual([waits!.type, waits!.at >= accepted!.at], ['deferred', true])
  clock.advance(2 * minuteMs)
  await untilFailures(domain, 2)
  const [, again, ...rest] = await readEvents(api, submission.id)
  assert.deepEqual([again!.recipient, rest.length], [someone, 1])
  assert.notEqual(again!.id, events[1]!.id)
  clock.advance(73 * hourMs)
  const ended = await untilStates(api, submission.id, 'failed', 'failed')
  for (const { response } of ended.recipients) assert.match(response!, /554 5\.3\.2 go away/)
  const last = await readEvents(api, submission.id)
  assert.deepEqual(
    last.map(({ type, classification }) => [type, classification]),
    [['accepted', null], ...[0, 1].map(() => ['failed', 'expired'])],
  )
  for (const { response } of last.slice(1)) assert.match(response!, /554 5\.3\.2 go away/)
})

test('events say why a recipient waits, in order of time and page by page, until the route is free', async (t) => {
  const later: Rule = ({ stage }) => (stage === 'rcpt' ? '450 4.7.1 later' : null)
  const { domain, sink, api, inbox } = await setStage(t, later)
  const cutting = await far.start(t, { rule: ({ stage }) => (stage === 'rcpt' ? 'cut' : null) })
  dns.fail('lost.test', 'SERVFAIL')
  const to = ['a@lost.test', `b@${domain}`, 'c@lost.test', `d@${cutting.domain}`]
  const { submission } = await send(api, inbox, to)
  await untilFailures('lost.test', 1)
  await untilFailures(cutting.domain, 1)
  await untilStates(api, submission.id, 'pending', 'deferred', 'pending', 'pending')
  clock.advance(30_000)
  sink.rule = () => null
  await flushQueue(node.foundation, domain)
  const seen = await untilStates(api, submission.id, 'pending', 'delivered', 'pending', 'pending')
  assert.match(seen.recipients[0]!.response!, /SERVFAIL/)
  assert.match(seen.recipients[3]!.response!, /the peer closed the connection/)
  const events = await readEvents(api, submission.id)
  assert.deepEqual(
    events.map(({ at }) => at),
    events.map(({ at }) => at).toSorted(),
  )
  const told = events.filter(({ type, attempt }) => type === 'deferred' && attempt === null)
  assert.deepEqual(told.map(({ recipient, classification }) => `${recipient} ${classification}`).toSorted(), [
    'a@lost.test dns',
    'c@lost.test dns',
    `d@${cutting.domain} network`,
  ])
  assert.equal(events.at(-1)!.type, 'delivered')
  for (const limit of [1, 2, 3]) assert.deepEqual(await pageThrough(api, submission.id, limit), events)
  cutting.sink.rule = () => null
  dns.fail('lost.test', null)
  dns.set('lost.test', { A: [sink.host] })
  for (const route of ['lost.test', cutting.domain]) await flushQueue(node.foundation, route)
  await untilStates(api, submission.id, 'delivered', 'delivered', 'delivered', 'delivered')
  const left = await readEvents(api, submission.id)
  assert.deepEqual(
    left.filter(({ type }) => type === 'deferred').map(({ recipient }) => recipient),
    [`b@${domain}`],
  )
})

test('replies within a transaction are hidden from other customers of the same server', async (t) => {
  const stage = await setStage(t, ({ stage, command }) =>
    stage === 'mail' ? `421 4.7.0 too much from alice@secret.test, ${command}` : null,
  )
  const { submission } = await send(stage.api, stage.inbox, [`someone@${stage.domain}`])
  await untilStates(stage.api, submission.id, 'deferred')
  await untilFailures(stage.domain, 1)
  const { api } = await node.createCaller()
  const other = await send(api, await api.createInbox(), [`someone@${stage.domain}`])
  const [, waits] = await readEvents(api, other.submission.id)
  assert.match(waits!.response!, /: the server ended the connection with 421 4\.7\.0$/)
  assert.match(node.log(), /too much from alice@secret\.test/)
})

/** Stores a value that no request could store: a subject with a line end. */
async function breakSubject({ message, submission }: Acceptance): Promise<void> {
  await db.query('update message set subject = $2 where id = $1', [message.id, 'a\r\nBcc: b'])
  await db.query('update submission set subject = $2 where id = $1', [submission.id, 'a\r\nBcc: b'])
}

test('hostile 5: a message that cannot be written waits by the schedule, shows why, and finally fails', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now' : null)
  const { domain, sink, api, inbox } = await setStage(t, rule)
  const content = Buffer.alloc(300_000, 'x').toString('base64')
  const large = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'with-attachment',
    body: {
      to: [{ email: `two@${domain}` }],
      subject: 'Test',
      text: 'Hello.',
      attachments: [{ filename: 'x.bin', contentType: 'application/octet-stream', content }],
    },
  })
  const broken = await send(api, inbox, [`one@${domain}`])
  const sent = [broken, large]
  for (const { submission } of sent) await untilAttempt(submission.id, 1)
  await breakSubject(broken)
  // Also removes the bytes of attachments. No other test of this file has any.
  for (const { blob } of await db.query<{ blob: string }>('select blob from raw where blob is not null'))
    await node.foundation.blobs.delete(blob)
  sink.rule = () => null
  for (const [attempt, waitedMs, stepMs] of [
    [2, minuteMs, 5 * minuteMs],
    [3, 5 * minuteMs, 15 * minuteMs],
    [4, 15 * minuteMs, 20 * hourMs],
    [5, 20 * hourMs, 20 * hourMs],
  ] as const) {
    clock.advance(waitedMs * 1.2)
    for (const { submission } of sent) {
      const { dueInMs } = await untilAttempt(submission.id, attempt)
      assert.ok(Math.abs(dueInMs / stepMs - 1) <= 0.11, `attempt ${attempt}: ${dueInMs} ms`)
    }
  }
  clock.advance(24 * hourMs)
  for (const { submission, message } of sent) {
    const ended = await untilStates(api, submission.id, 'failed')
    assert.equal((ended as Submission & { failureCode: string }).failureCode, 'internal_error')
    assert.match(ended.recipients[0]!.response!, /this service could not write the message/)
    const events = (await readEvents(api, submission.id)).slice(4)
    assert.deepEqual(
      events.map(({ type, attempt, classification }) => [type, attempt, classification]),
      [...[2, 3, 4, 5].map((n) => ['deferred', n, 'other']), ['failed', 6, 'other']],
    )
    assert.equal(sink.copiesOf(message.internetMessageId).length, 0)
    const logged = node
      .log()
      .split('\n')
      .filter((line) => line.includes('"message could not be composed"') && line.includes(submission.id))
    assert.equal(logged.length, 5)
  }
  // Other mail is sent meanwhile over the same connection.
  const { submission } = await send(api, inbox, [`three@${domain}`])
  await untilStates(api, submission.id, 'delivered')
})

// A node of its own accepts the message and delivers nothing, so that another node reads it back.
test('a message that cannot be written leaves its queue blocked until another one gets through', async (t) => {
  const { domain, caller, sink, api, inbox } = await setStage(t, goAway)
  const front = await startNode(place, { env, roles: ['api'] })
  t.after(() => front.stop())
  // The clock of the other node has been moved.
  front.foundation.clock.advance(clock.nowMs() - front.foundation.clock.nowMs())
  const broken = await send(front.meet(caller), inbox, [`one@${domain}`])
  const fault = (await untilFailures(domain, 1)).lastFault
  assert.match(fault!, /554 5\.3\.2/)
  await breakSubject(broken)
  sink.rule = () => null
  clock.advance(2 * minuteMs)
  await untilStates(api, broken.submission.id, 'deferred')
  await until('the queue to be let go', async () => (await listQueues(db, domain))[0]!.owner === null)
  const [route] = await listQueues(db, domain)
  assert.deepEqual([route!.failures, route!.lastFault], [1, fault])
  const { submission } = await send(api, inbox, [`two@${domain}`])
  await untilStates(api, submission.id, 'delivered')
  await untilFailures(domain, 0)
})

test('hostile 5: a result that cannot be stored is stored without its reply, and no mail is sent twice', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'message' ? '250 2.0.0 unstorable' : null)
  const { domain, sink, api, inbox } = await setStage(t, rule)
  await db.query(
    `alter table event add constraint poison check (response is null or response not like '%unstorable%')`,
  )
  const [sent, beside] = [
    await send(api, inbox, [`someone@${domain}`]),
    await send(api, inbox, [`b@${domain}`]),
  ]
  for (const { submission, message } of [sent, beside]) {
    const ended = await untilStates(api, submission.id, 'delivered')
    assert.equal(ended.recipients[0]!.response, null)
    assert.equal(sink.copiesOf(message.internetMessageId).length, 1)
  }
})

test('operators can pause, resume, flush and cancel a queue', async (t) => {
  const stage = await setStage(t, () => null)
  const { domain, sink, api, inbox } = stage
  const { foundation } = node
  await send(api, inbox, [`first@${domain}`])
  await until('the first mail', () => sink.copies.length === 1)

  await pauseQueue(foundation, domain, 'paused')
  await until('the queue to be let go', async () => (await listQueues(db, domain))[0]!.owner === null)
  const held = await send(api, inbox, [`held@${domain}`])
  clock.advance(hourMs)
  await pauseQueue(foundation, domain, 'running')
  await untilStates(api, held.submission.id, 'delivered')

  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 greylisted' : null)
  const grey = await send(api, inbox, [`grey@${domain}`])
  await untilStates(api, grey.submission.id, 'deferred')
  sink.rule = () => null
  assert.equal(await flushQueue(foundation, domain), 1)
  await untilStates(api, grey.submission.id, 'delivered')

  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 greylisted' : null)
  const doomed = await send(api, inbox, [`doomed@${domain}`])
  await untilStates(api, doomed.submission.id, 'deferred')
  assert.equal(await cancelQueue(foundation, domain), 1)
  await untilStates(api, doomed.submission.id, 'failed')
  assert.equal((await eventTypes(stage, doomed.submission.id)).at(-1), 'cancelled')
  await assert.rejects(cancelQueue(foundation, 'nowhere.test'), { code: 'not_found' })
})

// Nodes of its own, with two delivery modes.
test('a queue of another delivery mode moves to the configured mode, and is delivered there', async (t) => {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const before = await startNode(place, { env: { POSTHORN_DELIVERY: 'capture' }, roles: ['api'] })
  const caller = await before.createCaller()
  const inbox = await caller.api.createInbox()
  const { submission } = await send(caller.api, inbox, ['someone@far.test'])
  await before.stop()
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const after = await startNode(place, { env })
  await untilStates(after.meet(caller), submission.id, 'delivered')
  assert.equal(sink.copies.length, 1)
})

test('check 49: waiting queues do not stop others from being delivered', async (t) => {
  const { domain, api, inbox } = await setStage(t, () => null)
  const dead = Array.from({ length: 600 }, (_, i) => `dead${String(i).padStart(3, '0')}.test`)
  for (const name of dead) dns.fail(name, 'SERVFAIL')
  await send(
    api,
    inbox,
    dead.map((name) => `someone@${name}`),
  )
  const count = async () => {
    const [row] = await db.query<{ count: number }>(
      'select count(*) from route where failures > 0 and key = any($1)',
      [dead],
    )
    return row!.count
  }
  await until('every dead destination to back off', async () => (await count()) === dead.length, {
    timeoutMs: 60_000,
  })
  const startMs = performance.now()
  const { submission } = await send(api, inbox, [`someone@${domain}`])
  await untilStates(api, submission.id, 'delivered')
  assert.ok(performance.now() - startMs < 5_000)
})
