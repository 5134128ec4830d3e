// Nodes wake each other: work that one node commits begins on another node before its next poll.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { unwokenPollMs } from '../../src/base/signal.ts'
import type { Role } from '../../src/config/settings.ts'
import { isNodeLock, listLivingNodes } from '../../src/store/nodes.ts'
import { openStream } from '../support/event-source.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const place = await makePlace({ after })
const sink = await startSink(place)
const receiver = await startReceiver(place)
const env = {
  POSTHORN_DELIVERY: 'relay',
  POSTHORN_RELAY_URL: sink.url,
  POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
}
const start = (...roles: Role[]) => startNode(place, { env, roles })
// Two nodes of their own: each has only the roles that the other lacks, so that every step crosses.
const front = await start('api', 'mx')
const back = await start('delivery', 'jobs', 'webhooks')

/** Does `step` eleven times. Without wakes, each would wait for a poll, half of `unwokenPollMs` at the median. */
async function beforePolls(t: TestContext, step: () => Promise<() => boolean>): Promise<void> {
  const tookMs: number[] = []
  for (let n = 0; n < 11; n++) {
    const isDone = await step()
    const fromMs = performance.now()
    await until('the other node to act', isDone, { everyMs: 2 })
    tookMs.push(performance.now() - fromMs)
  }
  const [median, slowest] = [tookMs.sort((a, b) => a - b)[5]!, tookMs[10]!]
  t.diagnostic(`median ${median.toFixed(0)} ms, slowest ${slowest.toFixed(0)} ms`)
  assert.ok(median < unwokenPollMs / 4, `median ${median} ms`)
}

const { api } = await front.createCaller()
const inbox = await api.createInbox()

async function sendOne() {
  const before = sink.copies.length
  await send(api, inbox, ['someone@far.test'])
  return () => sink.copies.length > before
}

test('mail that one node accepts is on the wire of another node at once', async (t) => {
  await beforePolls(t, sendOne)
})

test('mail that one node receives is filed by another node, and reaches a stream and a webhook at once', async (t) => {
  const caller = await front.createCaller()
  const { api } = caller
  const inbox = await api.createInbox()
  await api.want('/v1/webhooks', { method: 'POST', status: 201, body: { url: receiver.url('/hook') } })
  const { http } = front.app.listening
  const stream = await openStream(t, `http://${http!.host}:${http!.port}`, caller.secret)
  await beforePolls(t, async () => {
    const [streamed, called] = [stream.events.length, receiver.callsOf('/hook').length]
    const raw = Buffer.from('From: a@far.test\r\nSubject: wake\r\n\r\nText\r\n')
    const { reply } = await sendMail(front.smtp, { from: 'a@far.test', to: inbox.address, raw })
    assert.match(reply, /^250/)
    return () => stream.events.length > streamed && receiver.callsOf('/hook').length > called
  })
})

test('nodes whose connections broke hear each other again', async (t) => {
  const { db } = back.foundation
  const former = await listLivingNodes(db)
  await db.query(`select pg_terminate_backend(l.pid) from pg_locks l where ${isNodeLock}`)
  await until('both nodes to have joined again', async () => {
    const living = await listLivingNodes(db)
    return living.length === 2 && living.every((id) => !former.includes(id))
  })
  await beforePolls(t, sendOne)
})
