// Sends that the far side refuses, stalls or cuts off, by the clock, to their end. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { cancelQueue, flushQueue, pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { listQueues } from '../../src/store/routes.ts'
import type { Acceptance, Api, Inbox, Submission } from '../support/api.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { type Rule, type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const [minuteMs, hourMs] = [60_000, 3_600_000]

interface Stage {
  node: TestNode
  sink: Sink
  api: Api
  inbox: Inbox
  /** The same caller, at a node that delivers nothing, so that what it accepts is read back. */
  meetFront(): Promise<Api>
}

/** A node that sends everything through one smarthost, which answers as the test says. */
async function setStage(t: TestContext, rule: Rule, env: Record<string, string> = {}): Promise<Stage> {
  const sink = await startSink(t, { rule })
  const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const place = await makePlace(t)
  const options = { env: { ...relay, ...env } }
  const node = await startNode(place, options)
  const caller = await node.createCaller()
  const meetFront = async () => (await startNode(place, { ...options, roles: ['api'] })).meet(caller)
  return { node, sink, api: caller.api, inbox: await caller.api.createInbox(), meetFront }
}

interface DeliveryState {
  status: string
  attempts: number
  dueInMs: number
}

async function readDelivery({ node: { foundation } }: Stage, submissionId: string): Promise<DeliveryState> {
  const [row] = await foundation.db.query<{ status: string; attempts: number; due: Date; updated: Date }>(
    `select case when claim_epoch is null then status else 'on the wire' end as status, attempts, due_at as due,
      updated_at as updated from delivery where submission_id = $1`,
    [submissionId],
  )
  const { status, attempts, due, updated } = row!
  return { status, attempts, dueInMs: due.getTime() - updated.getTime() }
}

function untilAttempt(stage: Stage, submissionId: string, attempts: number): Promise<DeliveryState> {
  return until(`attempt ${attempts}`, async () => {
    const state = await readDelivery(stage, submissionId)
    return state.attempts === attempts && state.status === 'deferred' ? state : null
  })
}

async function eventTypes({ api }: Stage, submissionId: string): Promise<string[]> {
  const path = `/v1/submissions/${submissionId}/events?limit=100`
  const { events } = await api.want<{ events: { type: string }[] }>(path)
  return events.map(({ type }) => type)
}

test('check 29, 38: a recipient refused for now is tried by the schedule to the end of its lifetime, then never again', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now' : null)
  const stage = await setStage(t, rule, { POSTHORN_RETRY_SCHEDULE: '1m,5m,20h' })
  const { node, sink, api, inbox } = stage
  let asked = 0
  sink.rule = (step) => {
    if (step.stage === 'rcpt') asked++
    return rule(step)
  }
  const { submission } = await send(api, inbox, ['someone@far.test'])
  const dues: number[] = []
  for (const attempt of [1, 2, 3, 4, 5, 6]) {
    const { dueInMs } = await untilAttempt(stage, submission.id, attempt)
    dues.push(dueInMs)
    assert.equal(asked, attempt)
    node.foundation.clock.advance(dueInMs)
  }
  for (const [index, stepMs] of [minuteMs, 5 * minuteMs, 20 * hourMs, 20 * hourMs].entries())
    assert.ok(Math.abs(dues[index]! / stepMs - 1) <= 0.11, `step ${index} took ${dues[index]} ms`)
  const ended = await untilStates(api, submission.id, 'failed')
  assert.equal(ended.status, 'failed')
  assert.equal((ended as Submission & { failureCode: string }).failureCode, 'soft_bounce_expired')
  assert.equal(ended.recipients[0]!.response, '450 4.2.1 not now')
  const last = (await eventTypes(stage, submission.id)).slice(-2)
  assert.deepEqual(last, ['deferred', 'failed'])
  node.foundation.clock.advance(48 * hourMs)
  const later = await send(api, inbox, ['other@far.test'])
  await untilAttempt(stage, later.submission.id, 1)
  assert.equal(asked, 7)
})

test('check 29: of several recipients each has its own end', async (t) => {
  const answers: Record<string, string> = {
    'gone@far.test': '550 5.1.1 no such user',
    'busy@far.test': '452 4.2.2 mailbox full',
  }
  const rule: Rule = ({ stage, command }) =>
    (stage === 'rcpt' && answers[/<([^>]*)>/.exec(command)![1]!]) || null
  const stage = await setStage(t, rule)
  const { submission, message } = await send(stage.api, stage.inbox, [
    'fine@far.test',
    'gone@far.test',
    'busy@far.test',
  ])
  const seen = await untilStates(stage.api, submission.id, 'delivered', 'bounced', 'deferred')
  assert.equal(seen.status, 'pending')
  assert.deepEqual(seen.recipients.map(({ response }) => response).slice(1), [
    '550 5.1.1 no such user',
    '452 4.2.2 mailbox full',
  ])
  stage.sink.rule = () => null
  stage.node.foundation.clock.advance(2 * minuteMs)
  const ended = await untilStates(stage.api, submission.id, 'delivered', 'bounced', 'delivered')
  assert.equal(ended.status, 'partially_delivered')
  const copies = stage.sink.copiesOf(message.internetMessageId).map(({ recipient }) => recipient)
  assert.deepEqual(copies.sort(), ['busy@far.test', 'fine@far.test'])
})

test('check 30: a connection lost after the dot is tried again, and never taken for delivered', async (t) => {
  const stage = await setStage(t, ({ stage }) => (stage === 'message' ? 'cut' : null))
  const { submission, message } = await send(stage.api, stage.inbox, ['someone@far.test'])
  await untilStates(stage.api, submission.id, 'deferred')
  assert.deepEqual(await eventTypes(stage, submission.id), ['accepted', 'queued', 'attempted', 'deferred'])
  stage.sink.rule = () => null
  stage.node.foundation.clock.advance(2 * minuteMs)
  await untilStates(stage.api, submission.id, 'delivered')
  assert.equal(stage.sink.copiesOf(message.internetMessageId).length, 1)
})

test('check 29: who is told 421 waits, and so does the whole destination, which nobody hammers', async (t) => {
  const stage = await setStage(t, ({ stage }) => (stage === 'mail' ? '421 4.7.0 too much' : null))
  const { node, sink, api, inbox } = stage
  const sent = await Promise.all(Array.from({ length: 80 }, (_, i) => send(api, inbox, [`r${i}@far.test`])))
  const route = await until('the queue to back off', async () => {
    const [row] = await listQueues(node.foundation.db, '@relay')
    return row?.notBefore ? row : null
  })
  assert.match(route.lastFault!, /421/)
  await until('the connections to end', () => sink.open === 0)
  const tried = sink.connections
  assert.ok(tried <= 25, `${tried} connections`)
  for (const [stepMs, failures] of [
    [minuteMs, 2],
    [5 * minuteMs, 3],
  ] as const) {
    node.foundation.clock.advance(stepMs * 1.2)
    await until(`failure ${failures}`, async () => {
      const [row] = await listQueues(node.foundation.db, '@relay')
      return row!.failures === failures
    })
  }
  sink.rule = () => null
  node.foundation.clock.advance(20 * minuteMs)
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
  const [row] = await listQueues(node.foundation.db, '@relay')
  assert.deepEqual([row!.failures, row!.notBefore, row!.lastFault], [0, null, null])
})

test('check 29: a fault of the way leaves the untried pending, without a write of theirs, and backs off the queue', async (t) => {
  const stage = await setStage(t, ({ stage }) => (stage === 'banner' ? '554 5.3.2 go away' : null))
  const { node, api, inbox } = stage
  const { submission } = await send(api, inbox, ['someone@far.test'])
  const { db, clock } = node.foundation
  for (const [failures, stepMs] of [
    [1, minuteMs],
    [2, 5 * minuteMs],
    [3, 15 * minuteMs],
  ] as const) {
    const row = await until(`failure ${failures}`, async () => {
      const [found] = await listQueues(db, '@relay')
      return found?.failures === failures ? found : null
    })
    const waitMs = row.notBefore!.getTime() - row.lastFaultAt!.getTime()
    assert.ok(Math.abs(waitMs / stepMs - 1) <= 0.11, `failure ${failures}: ${waitMs} ms`)
    if (failures < 3) clock.advance(waitMs)
  }
  const state = await readDelivery(stage, submission.id)
  assert.deepEqual([state.status, state.attempts], ['pending', 0])
  assert.deepEqual(await db.query('select from event where submission_id = $1', [submission.id]), [])
  // While it is paused nothing is tried, so no new fault can come between.
  await pauseQueue(node.foundation, '@relay', 'paused')
  await flushQueue(node.foundation, '@relay')
  const [flushed] = await listQueues(db, '@relay')
  assert.deepEqual([flushed!.failures, flushed!.lastFault], [0, null], 'a fault of the past is not shown')
  stage.sink.rule = () => null
  await pauseQueue(node.foundation, '@relay', 'running')
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

/** The events as somebody reads them who asks for few at a time. */
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

function untilFailures({ node }: Pick<Stage, 'node'>, route: string, failures: number) {
  return until(`failure ${failures} of ${route}`, async () => {
    const [row] = await listQueues(node.foundation.db, route)
    return row?.failures === failures ? row : null
  })
}

test('a recipient that waits shows the remote’s words, and ends with them', async (t) => {
  const stage = await setStage(t, ({ stage }) => (stage === 'banner' ? '554 5.3.2 go away' : null))
  const { node, api, inbox } = stage
  const { submission } = await send(api, inbox, ['someone@far.test', 'other@far.test'])
  await untilFailures(stage, '@relay', 1)
  const shown = await api.want<Submission>(`/v1/submissions/${submission.id}`)
  for (const { status, response } of shown.recipients) {
    assert.equal(status, 'pending')
    assert.match(response!, /^127\.0\.0\.1 \[127\.0\.0\.1\]: .* 554 5\.3\.2 go away$/)
  }
  const events = await readEvents(api, submission.id)
  assert.deepEqual(
    events.map(({ type, recipient, attempt, classification }) => [type, recipient, attempt, classification]),
    [
      ['accepted', null, null, null],
      ['deferred', 'someone@far.test', null, 'network'],
      ['deferred', 'other@far.test', null, 'network'],
    ],
  )
  assert.equal(events[1]!.response, shown.recipients[0]!.response)
  assert.match(events[1]!.id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.notEqual(events[1]!.id, events[2]!.id)
  assert.deepEqual(await readEvents(api, submission.id), events)
  // What is accepted meanwhile waits for the same reason, and is told so after it was accepted.
  node.foundation.clock.advance(10_000)
  const later = await send(api, inbox, ['later@far.test'])
  const [accepted, waits] = await readEvents(api, later.submission.id)
  assert.deepEqual([waits!.type, waits!.at >= accepted!.at], ['deferred', true])
  node.foundation.clock.advance(2 * minuteMs)
  await untilFailures(stage, '@relay', 2)
  const [, again, ...rest] = await readEvents(api, submission.id)
  assert.deepEqual([again!.recipient, rest.length], ['someone@far.test', 1])
  assert.notEqual(again!.id, events[1]!.id)
  node.foundation.clock.advance(73 * hourMs)
  const ended = await untilStates(api, submission.id, 'failed', 'failed')
  for (const { response } of ended.recipients) assert.match(response!, /554 5\.3\.2 go away/)
  const last = await readEvents(api, submission.id)
  assert.deepEqual(
    last.map(({ type, classification }) => [type, classification]),
    [['accepted', null], ...[0, 1].map(() => ['failed', 'expired'])],
  )
  for (const { response } of last.slice(1)) assert.match(response!, /554 5\.3\.2 go away/)
})

test('why a recipient waits is told in its place by time, and page by page, until the way is free', async (t) => {
  const live = await startSink(t, { host: '127.0.0.33' })
  const cutting = await startSink(t, {
    host: '127.0.0.34',
    port: live.port,
    rule: ({ stage }) => (stage === 'rcpt' ? 'cut' : null),
  })
  const dns = await DnsServer.start({ 'live.test': { A: [live.host] }, 'cut.test': { A: [cutting.host] } })
  t.after(() => dns.close())
  dns.fail('lost.test', 'SERVFAIL')
  const node = await startNode(await makePlace(t), {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(live.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await node.createCaller()
  live.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.7.1 later' : null)
  const to = ['a@lost.test', 'b@live.test', 'c@lost.test', 'd@cut.test']
  const { submission } = await send(api, await api.createInbox(), to)
  await untilFailures({ node }, 'lost.test', 1)
  await untilFailures({ node }, 'cut.test', 1)
  await untilStates(api, submission.id, 'pending', 'deferred', 'pending', 'pending')
  node.foundation.clock.advance(30_000)
  live.rule = () => null
  await flushQueue(node.foundation, 'live.test')
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
    'd@cut.test network',
  ])
  assert.equal(events.at(-1)!.type, 'delivered')
  for (const limit of [1, 2, 3]) assert.deepEqual(await pageThrough(api, submission.id, limit), events)
  cutting.rule = () => null
  dns.fail('lost.test', null)
  dns.set('lost.test', { A: [live.host] })
  for (const route of ['lost.test', 'cut.test']) await flushQueue(node.foundation, route)
  await untilStates(api, submission.id, 'delivered', 'delivered', 'delivered', 'delivered')
  const left = await readEvents(api, submission.id)
  assert.deepEqual(
    left.filter(({ type }) => type === 'deferred').map(({ recipient }) => recipient),
    ['b@live.test'],
  )
})

test('words within a transaction are not shown to others who wait for the same server', async (t) => {
  const stage = await setStage(t, ({ stage, command }) =>
    stage === 'mail' ? `421 4.7.0 too much from alice@secret.test, ${command}` : null,
  )
  const { submission } = await send(stage.api, stage.inbox, ['someone@far.test'])
  await untilStates(stage.api, submission.id, 'deferred')
  await untilFailures(stage, '@relay', 1)
  const { api } = await stage.node.createCaller()
  const other = await send(api, await api.createInbox(), ['someone@far.test'])
  const [, waits] = await readEvents(api, other.submission.id)
  assert.match(waits!.response!, /: the server ended the connection with 421 4\.7\.0$/)
  assert.match(stage.node.log(), /too much from alice@secret\.test/)
})

/** What no request could store: a subject that ends its line. */
async function breakSubject({ node }: Stage, { message, submission }: Acceptance): Promise<void> {
  const { db } = node.foundation
  await db.query('update message set subject = $2 where id = $1', [message.id, 'a\r\nBcc: b'])
  await db.query('update submission set subject = $2 where id = $1', [submission.id, 'a\r\nBcc: b'])
}

test('hostile 5: a message that cannot be written waits by the schedule, is told, and fails in the end', async (t) => {
  const rule: Rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now' : null)
  const stage = await setStage(t, rule, { POSTHORN_RETRY_SCHEDULE: '1m,5m,20m' })
  const { node, sink, api, inbox } = stage
  const { db, blobs, clock } = node.foundation
  const content = Buffer.alloc(300_000, 'x').toString('base64')
  const large = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'with-attachment',
    body: {
      to: [{ email: 'two@far.test' }],
      subject: 'Test',
      text: 'Hello.',
      attachments: [{ filename: 'x.bin', contentType: 'application/octet-stream', content }],
    },
  })
  const broken = await send(api, inbox, ['one@far.test'])
  const sent = [broken, large]
  for (const { submission } of sent) await untilAttempt(stage, submission.id, 1)
  await breakSubject(stage, broken)
  // And attachments whose bytes are gone.
  for (const { blob } of await db.query<{ blob: string }>('select blob from raw where blob is not null'))
    await blobs.delete(blob)
  sink.rule = () => null
  for (const [attempt, stepMs] of [
    [2, 5 * minuteMs],
    [3, 20 * minuteMs],
    [4, 20 * minuteMs],
    [5, 20 * minuteMs],
  ] as const) {
    clock.advance(25 * minuteMs)
    for (const { submission } of sent) {
      const { dueInMs } = await untilAttempt(stage, submission.id, attempt)
      assert.ok(Math.abs(dueInMs / stepMs - 1) <= 0.11, `attempt ${attempt}: ${dueInMs} ms`)
    }
  }
  clock.advance(25 * minuteMs)
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
      .filter((line) => line.includes('"a message could not be written"') && line.includes(submission.id))
    assert.equal(logged.length, 5)
  }
  // Others go out meanwhile, over the same connection.
  const { submission } = await send(api, inbox, ['three@far.test'])
  await untilStates(api, submission.id, 'delivered')
})

test('a message that we cannot write says nothing of the way: it stays blocked until one gets through', async (t) => {
  const stage = await setStage(t, ({ stage }) => (stage === 'banner' ? '554 5.3.2 go away' : null))
  const { node, sink, api, inbox } = stage
  const { db, clock } = node.foundation
  const broken = await send(await stage.meetFront(), inbox, ['one@far.test'])
  const fault = (await untilFailures(stage, '@relay', 1)).lastFault
  assert.match(fault!, /554 5\.3\.2/)
  await breakSubject(stage, broken)
  sink.rule = () => null
  clock.advance(2 * minuteMs)
  await untilStates(api, broken.submission.id, 'deferred')
  await until('the queue to be let go', async () => (await listQueues(db, '@relay'))[0]!.owner === null)
  const [route] = await listQueues(db, '@relay')
  assert.deepEqual([route!.failures, route!.lastFault], [1, fault])
  const { submission } = await send(api, inbox, ['two@far.test'])
  await untilStates(api, submission.id, 'delivered')
  await untilFailures(stage, '@relay', 0)
})

test('hostile 5: a result that cannot be stored is stored without the words, and nothing is sent twice', async (t) => {
  const stage = await setStage(t, ({ stage }) => (stage === 'message' ? '250 2.0.0 unstorable' : null))
  const { node, sink, api, inbox } = stage
  await node.foundation.db.query(
    `alter table event add constraint poison check (response is null or response not like '%unstorable%')`,
  )
  const [sent, beside] = [
    await send(api, inbox, ['someone@far.test']),
    await send(api, inbox, ['b@far.test']),
  ]
  for (const { submission, message } of [sent, beside]) {
    const ended = await untilStates(api, submission.id, 'delivered')
    assert.equal(ended.recipients[0]!.response, null)
    assert.equal(sink.copiesOf(message.internetMessageId).length, 1)
  }
})

test('operators pause, resume, flush and cancel a queue', async (t) => {
  const stage = await setStage(t, () => null)
  const { node, sink, api, inbox } = stage
  const { foundation } = node
  await send(api, inbox, ['first@far.test'])
  await until('the first mail', () => sink.copies.length === 1)

  await pauseQueue(foundation, '@relay', 'paused')
  await until(
    'the queue to be let go',
    async () => (await listQueues(foundation.db, '@relay'))[0]!.owner === null,
  )
  const held = await send(api, inbox, ['held@far.test'])
  foundation.clock.advance(hourMs)
  await pauseQueue(foundation, '@relay', 'running')
  await untilStates(api, held.submission.id, 'delivered')

  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 greylisted' : null)
  const grey = await send(api, inbox, ['grey@far.test'])
  await untilStates(api, grey.submission.id, 'deferred')
  sink.rule = () => null
  assert.equal(await flushQueue(foundation, '@relay'), 1)
  await untilStates(api, grey.submission.id, 'delivered')

  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 greylisted' : null)
  const doomed = await send(api, inbox, ['doomed@far.test'])
  await untilStates(api, doomed.submission.id, 'deferred')
  assert.equal(await cancelQueue(foundation, '@relay'), 1)
  await untilStates(api, doomed.submission.id, 'failed')
  assert.equal((await eventTypes(stage, doomed.submission.id)).at(-1), 'cancelled')
  await assert.rejects(cancelQueue(foundation, 'nowhere.test'), { code: 'not_found' })
})

test('a queue of another delivery mode moves to the one that is set, and goes out there', async (t) => {
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

test('check 49: queues that only wait do not keep others from going out', async (t) => {
  const sink = await startSink(t, { host: '127.0.0.4' })
  const dead = Array.from({ length: 600 }, (_, i) => `dead${String(i).padStart(3, '0')}.test`)
  const dns = await DnsServer.start({ 'live.test': { A: [sink.host] } })
  t.after(() => dns.close())
  for (const name of dead) dns.fail(name, 'SERVFAIL')
  const node = await startNode(await makePlace(t), {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(sink.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  await send(
    api,
    inbox,
    dead.map((name) => `someone@${name}`),
  )
  const count = async () => {
    const [row] = await node.foundation.db.query<{ count: number }>(
      'select count(*) from route where failures > 0',
    )
    return row!.count
  }
  await until('every dead destination to back off', async () => (await count()) === dead.length, {
    timeoutMs: 60_000,
  })
  const startMs = performance.now()
  const { submission } = await send(api, inbox, ['someone@live.test'])
  await untilStates(api, submission.id, 'delivered')
  assert.ok(performance.now() - startMs < 5_000)
})
