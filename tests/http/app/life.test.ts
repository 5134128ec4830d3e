// What the page of a submission is told beyond its events: what waits until when, and how its servers were spoken to.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAs } from '../../support/dashboard.ts'
import { makePlace, send, startNode, untilStates } from '../../support/node.ts'
import { startSink } from '../../support/sink.ts'

const rules: Record<string, string> = {
  'later@far.test': '450 4.2.1 not now',
  'nobody@far.test': '550 5.1.1 no such user',
}

test('a submission’s life tells the command that was answered, and until when a recipient waits', async (t) => {
  const sink = await startSink(t, {
    rule: ({ stage, command }) =>
      stage === 'rcpt' ? (rules[/<(.*)>/.exec(command)?.[1] ?? ''] ?? null) : null,
  })
  const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const node = await startNode(await makePlace(t), { env: relay })
  const caller = await node.createCaller()
  const inbox = await caller.api.createInbox()
  const to = ['later@far.test', 'nobody@far.test', 'ada@far.test']
  const { submission, message } = await send(caller.api, inbox, to)
  await untilStates(caller.api, submission.id, 'deferred', 'bounced', 'delivered')
  const browser = await signInAs(node, caller.organizationId, 'viewer')
  const path = `/app/v1/submissions/${submission.id}`
  const { body: life } = await browser.ask('GET', `${path}/life`)
  assert.deepEqual([life.inboxId, life.messageId], [inbox.id, message.id])
  assert.match(life.threadId, /^thr_/)
  const [later, nobody, ada] = life.recipients
  assert.ok(Date.parse(later.nextAttemptAt) > Date.now() && later.nextAttemptAt < later.givenUpAt)
  assert.deepEqual([later.attempts, later.onWire, later.paused], [1, false, false])
  assert.deepEqual([nobody.failureCode, nobody.nextAttemptAt, nobody.givenUpAt], ['hard_bounce', null, null])
  assert.deepEqual([ada.failureCode, ada.nextAttemptAt], [null, null])
  const { body: page } = await browser.ask('GET', `${path}/events`)
  const stageOf = (type: string) => {
    const { id } = page.events.find((event: { type: string }) => event.type === type)
    return life.exchanges.find(({ eventId }: { eventId: string }) => eventId === id).stage
  }
  assert.deepEqual(['deferred', 'bounced', 'delivered'].map(stageOf), ['rcpt', 'rcpt', 'message'])
  const remotes = page.events.flatMap(({ remote }: { remote: object | null }) => (remote ? [remote] : []))
  assert.deepEqual(Object.keys(remotes[0]), ['host', 'ip', 'tls'], 'the API’s events are as they were')
  const other = await node.createCaller()
  const stranger = await signInAs(node, other.organizationId, 'owner')
  assert.equal((await stranger.ask('GET', `${path}/life`)).status, 404)
  await caller.api.want(`/v1/submissions/${submission.id}/cancel`, { method: 'POST' })
  const { body: after } = await browser.ask('GET', `${path}/life`)
  assert.deepEqual([after.recipients[0].failureCode, after.recipients[0].nextAttemptAt], ['cancelled', null])
})
