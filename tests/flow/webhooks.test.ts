// Webhooks end to end: events reach their endpoints signed, in order, and again until accepted. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { after, test } from 'node:test'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import type { OutboxItem } from '../../src/store/events/outbox.ts'
import { judgeStrictly, readDocument } from '../http/document.ts'
import { announceAsNode } from '../support/announce.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import {
  type ReceivedCall,
  startReceiver,
  verifyCall,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'

interface Hook {
  id: string
  secret: string
  status: string
  eventTypes: string[] | null
}
interface Delivery {
  id: string
  eventId: string
  type: string
  status: string
  attempts: number
  nextAttemptAt: string | null
  responseStatus: number | null
  responseBody: string | null
  error: string | null
  request: { url: string; sizeBytes: number } | null
}

interface Stage {
  node: TestNode
  caller: TestCaller
  receiver: WebhookReceiver
}

const minute = 60_000
const day = 86_400_000

/** Takes mail, except for an unknown recipient and one that is deferred. */
const rule: Rule = ({ stage, command }) => {
  if (stage === 'rcpt' && command.includes('nobody')) return '550 5.1.1 no such user'
  return stage === 'rcpt' && command.includes('later') ? '450 4.2.1 come again' : null
}

const place = await makePlace({ after })
const sink = await startSink(place, { rule })
const dns = await DnsServer.start()
place.after(() => dns.close())
const env = {
  POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  POSTHORN_DELIVERY: 'relay',
  POSTHORN_RELAY_URL: sink.url,
  POSTHORN_DNS: dns.address,
  POSTHORN_MAIL_HOST: 'mx.posthorn.test',
}
const node = await startNode(place, { env })

/** An organization of its own. Its receiver runs to the end, so that no other receiver gets its port and its calls. */
async function setStage(): Promise<Stage> {
  return { node, caller: await node.createCaller(), receiver: await startReceiver(place) }
}

async function hook({ caller, receiver }: Stage, path: string, body: object = {}): Promise<Hook> {
  return await caller.api.want('/v1/webhooks', {
    method: 'POST',
    status: 201,
    body: { url: receiver.url(path), ...body },
  })
}

/** Announces suppressions, which nothing else in these tests does. Returns their ids. */
async function tell({ node, caller }: Stage, count = 1): Promise<string[]> {
  const { db, clock } = node.foundation
  const items: OutboxItem[] = Array.from({ length: count }, (_, n) => ({
    id: randomUUIDv7(),
    type: 'suppression.created',
    content: { suppression: { n } },
  }))
  await announceAsNode(db, { organizationId: caller.organizationId, at: clock.now(), items })
  return items.map(({ id }) => id)
}

async function deliveriesOf({ caller }: Stage, { id }: Hook): Promise<Delivery[]> {
  const { deliveries } = await caller.api.want<{ deliveries: Delivery[] }>(
    `/v1/webhooks/${id}/deliveries?limit=100`,
  )
  return deliveries
}

/** Waits until `isWanted` accepts the endpoint's newest delivery. */
async function untilDelivery(
  stage: Stage,
  of: Hook,
  what: string,
  isWanted: (delivery: Delivery) => boolean,
): Promise<Delivery> {
  return await until(what, async () => {
    const [newest] = await deliveriesOf(stage, of)
    return newest && isWanted(newest) ? newest : null
  })
}

/** The last attempt's start for each event, in order. */
async function attemptsOf({ node }: Stage, { id }: Hook): Promise<{ event: string; at: Date | null }[]> {
  return await node.foundation.db.query(
    `select item->>'id' as event, last_attempt_at as at from webhook_delivery where webhook_id = $1 order by id`,
    [id],
  )
}

const idOf = ({ headers }: ReceivedCall) => headers['webhook-id']
const caller = (stage: Stage) => stage.caller.api
const read = (stage: Stage, { id }: Hook) => caller(stage).want<Hook>(`/v1/webhooks/${id}`)

// The libraries refuse a wrong timestamp, and a second node would have a clock of its own. These three tests run before
// those that move the clock.

/** The events caused here. Complaints and scans have tests of their own. */
const told = [
  ...['domain.verified', 'message.bounced', 'message.deferred', 'message.delivered', 'message.failed'],
  ...['message.received', 'message.sent', 'suppression.created', 'webhook.test'],
]

test('check 71, 82: every kind of call has the documented body', async (t) => {
  const receiver = await startReceiver(t)
  const { http } = node.app.listening
  const document = await readDocument(`http://${http?.host}:${http?.port}`)
  const { api } = await node.createCaller()
  const { id } = await api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    body: { url: receiver.url('/told') },
    status: 201,
  })
  await api.want(`/v1/webhooks/${id}/test`, { method: 'POST', status: 202 })
  const domain = await proveDomain(api, dns, 'told.test', ['outbound'])
  const [ada, ben] = [await api.createInbox('ada'), await api.createInbox('ben')]
  const send = (path: string, more: object) =>
    api.want<{ id: string; submission?: { id: string } }>(path, {
      method: 'POST',
      idempotencyKey: randomUUID(),
      status: 202,
      body: { subject: 'Hello', text: 'T'.repeat(70_000), html: '<p>There</p>', ...more },
    })
  const menu = { filename: 'menu.txt', contentType: 'text/plain', content: 'U291cC4=' }
  await send(`/v1/inboxes/${ada.id}/messages`, {
    to: [{ email: ben.address, name: 'Ben' }],
    attachments: [menu],
  })
  const from = { email: `a@${domain.domain}` }
  await send('/v1/send', { from, to: [{ email: 'nobody@far.test' }], metadata: { a: 1 } })
  const waiting = await send('/v1/send', { from, to: [{ email: 'later@far.test' }] })
  await until('the deferral', () => receiver.calls.some(({ body }) => body.type === 'message.deferred'))
  await api.want(`/v1/submissions/${waiting.id}/cancel`, { method: 'POST' })
  const types = () => [...new Set(receiver.calls.map(({ body }) => body.type))].sort()
  await until('all kinds of calls', () => told.every((type) => types().includes(type)))
  for (const { raw, body, headers } of receiver.calls) {
    const { parameters, requestBody } = document.webhooks[body.type]!.post
    for (const { name } of parameters!) assert.ok(headers[name], name)
    const judged = judgeStrictly(document, requestBody!.content['application/json']!.schema)
    const [isRight, errors] = judged.Errors(JSON.parse(raw))
    assert.ok(isRight, `${body.type} ${JSON.stringify(errors)}\n${raw.slice(0, 3_000)}`)
  }
})

test('check 82: standardwebhooks and svix verify every call, and each has its event’s id', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/all')
  const ids = await tell(stage, 50)
  await until('all calls', () => stage.receiver.calls.length === ids.length)
  for (const call of stage.receiver.calls) verifyCall(made.secret, call)
  assert.deepEqual(stage.receiver.calls.map(idOf).sort(), [...ids].sort())
  const { body, headers } = stage.receiver.calls[0]!
  assert.deepEqual(Object.keys(body), ['type', 'timestamp', 'data'])
  assert.equal(headers['content-type'], 'application/json; charset=utf-8')
  const delivery = await untilDelivery(stage, made, 'the result', ({ status }) => status === 'succeeded')
  assert.deepEqual([delivery.attempts, delivery.responseStatus, delivery.error], [1, 204, null])
  assert.equal(delivery.request?.url, stage.receiver.url('/all'))
})

test('webhooks: two nodes share the endpoints, and each event is called once', async (t) => {
  const stage = await setStage()
  const second = await startNode(place, { env, roles: ['webhooks'] })
  t.after(() => second.stop())
  for (let n = 0; n < 8; n++) await hook(stage, `/${n}`)
  const ids: string[] = []
  for (let n = 0; n < 20; n++) ids.push(...(await tell(stage, 5)))
  await until('all calls', () => stage.receiver.calls.length >= 8 * ids.length)
  for (let n = 0; n < 8; n++)
    assert.deepEqual(stage.receiver.callsOf(`/${n}`).map(idOf).sort(), [...ids].sort())
})

test('check 82: for a day after a rotation both secrets verify, then only the new one', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/')
  const path = `/v1/webhooks/${made.id}/rotate-secret`
  const rotated = await caller(stage).want<Hook>(path, { method: 'POST' })
  assert.notEqual(rotated.secret, made.secret)
  await tell(stage)
  const both = await until('a call', () => stage.receiver.calls[0])
  assert.equal(both.headers['webhook-signature']!.split(' ').length, 2)
  for (const { secret } of [made, rotated]) verifyCall(secret, both)
  stage.node.foundation.clock.advance(day + minute)
  await tell(stage)
  const one = await until('another call', () => stage.receiver.calls[1])
  assert.equal(one.headers['webhook-signature']!.split(' ').length, 1)
})

test('webhooks: an endpoint gets the event types it wants, of its own organization alone', async () => {
  const stage = await setStage()
  await hook(stage, '/domains', { eventTypes: ['domain.failed'] })
  await hook(stage, '/suppressions', { eventTypes: ['suppression.created'] })
  const other = { ...stage, caller: await stage.node.createCaller() }
  await hook(other, '/other')
  await tell(stage)
  await until('the call', () => stage.receiver.calls.length > 0)
  await tell(other)
  await until('the other call', () => stage.receiver.callsOf('/other').length === 1)
  assert.deepEqual(
    stage.receiver.calls.map(({ path }) => path),
    ['/suppressions', '/other'],
  )
})

test('webhooks: bodies show message, submission and event as the API does, long texts cut', async () => {
  const stage = await setStage()
  await hook(stage, '/', { eventTypes: ['message.sent'] })
  const { node, caller } = stage
  const inbox = await caller.api.createInbox()
  const text = 'ä'.repeat(40_000)
  const { message, submission } = await send(caller.api, inbox, ['u@far.test'], { text })
  const { db, clock } = node.foundation
  const id = randomUUIDv7()
  const items: OutboxItem[] = [{ id, type: 'message.sent', submission: submission.id, event: 0 }]
  await announceAsNode(db, { organizationId: caller.organizationId, at: clock.now(), items })
  const call = await until('the call', () => stage.receiver.calls.find((one) => idOf(one) === id))
  const told = call.body.data as Record<string, Record<string, unknown>>
  assert.deepEqual([told['message']!['id'], told['submission']!['id']], [message.id, submission.id])
  assert.equal(told['event']!['type'], 'accepted')
  assert.equal(told['truncated'], true)
  assert.equal(told['message']!['text'], 'ä'.repeat(32_768))
})

test('check 84: first attempts keep the order of their events, and retries carry the same id with a fresh time', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/')
  let refusals = 0
  stage.receiver.answer('/', (response) => response.writeHead(refusals++ < 1 ? 500 : 200).end('later'))
  const [id] = await tell(stage)
  const failed = await untilDelivery(stage, made, 'the failure', ({ attempts }) => attempts === 1)
  assert.deepEqual([failed.status, failed.responseStatus, failed.responseBody], ['pending', 500, 'later'])
  assert.ok(failed.nextAttemptAt)
  stage.node.foundation.clock.advance(minute)
  await untilDelivery(stage, made, 'the success', ({ status }) => status === 'succeeded')
  const [first, second] = stage.receiver.calls
  assert.deepEqual([idOf(first!), idOf(second!)], [id, id])
  assert.ok(Number(second!.headers['webhook-timestamp']) >= Number(first!.headers['webhook-timestamp']) + 60)

  const ids = await tell(stage, 200)
  await until('the rest', async () => {
    const rows = await attemptsOf(stage, made)
    return rows.length === 201 && rows.every(({ at }) => at !== null)
  })
  const begun = (await attemptsOf(stage, made)).slice(1)
  assert.deepEqual(
    begun.map(({ event }) => event),
    ids,
  )
  for (const [n, { at }] of begun.entries()) assert.ok(n === 0 || at! >= begun[n - 1]!.at!)
})

test('check 83: an endpoint that never answers delays no other, and its calls end in failure', async () => {
  const stage = await setStage()
  await hook(stage, '/never')
  await hook(stage, '/quick')
  stage.receiver.answer('/never', () => {})
  await tell(stage, 100)
  await until('the quick one', () => stage.receiver.callsOf('/quick').length === 100, { timeoutMs: 10_000 })
})

test('check 83: after ten attempts a delivery has failed, and stays visible', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/')
  const [refused] = await tell(stage)
  stage.receiver.answer('/', (response, call) => response.writeHead(idOf(call) === refused ? 503 : 204).end())
  const deliveryOf = async (id: string) =>
    (await deliveriesOf(stage, made)).find(({ eventId }) => eventId === id)
  const untilIt = async (what: string, id: string, isWanted: (delivery: Delivery) => boolean) =>
    await until(what, async () => {
      const delivery = await deliveryOf(id)
      return delivery && isWanted(delivery) ? delivery : null
    })
  for (let attempt = 1; attempt <= 10; attempt++) {
    await untilIt(`attempt ${attempt}`, refused!, ({ attempts }) => attempts === attempt)
    // Successful calls for other events keep the endpoint enabled. Otherwise the delivery would end early.
    const [taken] = await tell(stage)
    await untilIt(`the success after attempt ${attempt}`, taken!, ({ status }) => status === 'succeeded')
    stage.node.foundation.clock.advance(attempt < 9 ? day : 1.2 * day)
  }
  const delivery = await deliveryOf(refused!)
  assert.deepEqual([delivery!.status, delivery!.attempts, delivery!.responseStatus], ['failed', 10, 503])
})

test('check 83: 410 disables an endpoint at once, and its waiting calls fail', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/gone')
  stage.receiver.answer('/gone', (response) => response.writeHead(410).end())
  await tell(stage, 3)
  await until('it to be disabled', async () => (await read(stage, made)).status === 'disabled')
  await until('the rest to fail', async () =>
    (await deliveriesOf(stage, made)).every(({ status }) => status === 'failed'),
  )
  const calls = stage.receiver.calls.length
  await tell(stage)
  await hook(stage, '/after')
  await tell(stage)
  await until('a later call elsewhere', () => stage.receiver.callsOf('/after').length > 0)
  assert.equal(stage.receiver.callsOf('/gone').length, calls)
})

test('check 83: five days of failures alone disable an endpoint, and one success in between keeps it', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/')
  let status = 500
  stage.receiver.answer('/', (response) => response.writeHead(status).end())
  const { clock } = stage.node.foundation
  const failOnce = async (count: number) => {
    await tell(stage)
    await until(
      `call ${count}`,
      async () => (await deliveriesOf(stage, made)).filter((one) => one.attempts > 0).length === count,
    )
  }
  await failOnce(1)
  clock.advance(4 * day)
  status = 200
  await failOnce(2)
  status = 500
  await failOnce(3)
  clock.advance(4 * day)
  await failOnce(4)
  assert.equal((await read(stage, made)).status, 'active')
  clock.advance(1.1 * day)
  await tell(stage)
  await until('it to be disabled', async () => (await read(stage, made)).status === 'disabled')
})

test('a signing secret that cannot be opened is shown as the call’s error, and the call is retried', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/')
  const { db, clock } = stage.node.foundation
  await db.query(`update webhook set sealed_secret = decode(repeat('00', 60), 'hex') where id = $1`, [
    made.id,
  ])
  await tell(stage)
  const failed = await untilDelivery(stage, made, 'the error', ({ error }) => error !== null)
  assert.deepEqual([failed.status, failed.attempts], ['pending', 1])
  assert.match(failed.error!, /signing secret cannot be opened/)
  assert.ok(Date.parse(failed.nextAttemptAt!) > clock.nowMs())
  await caller(stage).want<Hook>(`/v1/webhooks/${made.id}/rotate-secret`, { method: 'POST' })
  clock.advance(minute)
  await untilDelivery(stage, made, 'the call', ({ status }) => status === 'succeeded')
  assert.equal(stage.node.log().split('webhook signing secret could not be opened').length - 1, 1)
})

test('webhooks: a test call ignores the wanted types, and a replay carries its event’s id', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/', { eventTypes: ['domain.verified'] })
  const other = await hook(stage, '/other')
  await caller(stage).want(`/v1/webhooks/${made.id}/test`, { method: 'POST', status: 202 })
  const call = await until('the call', () => stage.receiver.calls[0])
  assert.deepEqual([call.body.type, call.body.data], ['webhook.test', { webhookId: made.id }])
  const delivery = await untilDelivery(stage, made, 'the result', ({ status }) => status === 'succeeded')
  const path = `/v1/webhooks/${made.id}/deliveries/${delivery.id}/replay`
  const replayed = await caller(stage).want<Delivery>(path, { method: 'POST', status: 202 })
  assert.equal(replayed.status, 'pending')
  const again = await until('the replay', () => stage.receiver.calls[1])
  assert.equal(idOf(again), idOf(call))
  assert.deepEqual(await deliveriesOf(stage, other), [])
})

test('check 85: a deleted endpoint and a suspended organization get no further call, queued ones included', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/')
  stage.receiver.answer('/', (response) => response.writeHead(500).end())
  await tell(stage)
  await untilDelivery(stage, made, 'the failure', ({ attempts }) => attempts === 1)
  const { foundation } = stage.node
  await changeOrganizationStatus(foundation, stage.caller.organizationId, 'suspended')
  const other = { ...stage, caller: await stage.node.createCaller() }
  await hook(other, '/other')
  foundation.clock.advance(day)
  await tell(stage)
  await tell(other)
  await until('a call elsewhere', () => stage.receiver.callsOf('/other').length === 1)
  assert.equal(stage.receiver.callsOf('/').length, 1)

  await changeOrganizationStatus(foundation, stage.caller.organizationId, 'active')
  await until('what was held back', () => stage.receiver.callsOf('/').length >= 3)
  const gone = await hook(stage, '/gone')
  stage.receiver.answer('/gone', (response) => response.writeHead(500).end())
  await tell(stage, 2)
  await until(
    'the failures',
    async () => (await deliveriesOf(stage, gone)).filter((one) => one.attempts === 1).length === 2,
  )
  await caller(stage).want(`/v1/webhooks/${gone.id}`, { method: 'DELETE', status: 204 })
  foundation.clock.advance(day)
  await tell(stage)
  await tell(other)
  await until('a call elsewhere', () => stage.receiver.callsOf('/other').length === 2)
  assert.equal(stage.receiver.callsOf('/gone').length, 2)
  const rows =
    'select from webhook where id = $1 union all select from webhook_delivery where webhook_id = $1'
  await until(
    'the tombstone to be purged',
    async () => (await foundation.db.query(rows, [gone.id])).length === 0,
  )
})

test('webhooks: announced events are purged after seven days, and calls after thirty', async () => {
  const stage = await setStage()
  const made = await hook(stage, '/')
  await tell(stage)
  await untilDelivery(stage, made, 'the success', ({ status }) => status === 'succeeded')
  const { db, clock } = stage.node.foundation
  const count = async (table: string) => {
    const { organizationId } = stage.caller
    return (await db.query(`select from ${table} where organization_id = $1`, [organizationId])).length
  }
  clock.advance(7 * day + minute)
  await until('the outbox to be empty', async () => (await count('outbox')) === 0)
  assert.equal(await count('webhook_delivery'), 1)
  clock.advance(23 * day)
  await until('the deliveries to be gone', async () => (await count('webhook_delivery')) === 0)
})
