// Tests what a submission's page shows besides its events: due times of waiting recipients, SMTP sessions and content.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { Clock } from '../../../src/base/clock.ts'
import { purgeContents } from '../../../src/flow/upkeep/purge-contents.ts'
import type { Api } from '../../support/api.ts'
import { proveDomain } from '../../support/customer-domain.ts'
import { signInAs } from '../../support/dashboard.ts'
import { DnsServer } from '../../support/dns-server.ts'
import { makePlace, send, startNode, untilStates } from '../../support/node.ts'
import { startSink } from '../../support/sink.ts'

const rules: Record<string, string> = {
  'later@far.test': '450 4.2.1 not now',
  'nobody@far.test': '550 5.1.1 no such user',
}

const place = await makePlace({ after })
const sink = await startSink(place, {
  rule: ({ stage, command }) =>
    stage === 'rcpt' ? (rules[/<(.*)>/.exec(command)?.[1] ?? ''] ?? null) : null,
})
const dns = await DnsServer.start({})
place.after(() => dns.close())
const node = await startNode(place, {
  env: {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_DNS: dns.address,
    POSTHORN_MAIL_HOST: 'mx.posthorn.test',
  },
})

test('a submission’s life shows the answered command, and until when a recipient waits', async () => {
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

const lifetimeMs = 72 * 3_600_000

/** Sends through the domain and waits until the mail is delivered. */
async function sendDirectly(api: Api, body: { from: object; text: string; html: string; replyTo?: object }) {
  const to = [{ email: 'ada@far.test', name: 'Ada' }]
  const submission = await api.want<{ id: string; createdAt: string }>('/v1/send', {
    method: 'POST',
    status: 202,
    idempotencyKey: randomUUID(),
    body: { ...body, to, subject: 'Your booking' },
  })
  await untilStates(api, submission.id, 'delivered')
  return submission
}

test('stored content of a send without an inbox is shown safe and cut, and is null after its deletion', async () => {
  const { api, organizationId } = await node.createCaller()
  await proveDomain(api, dns, 'hotel.example', ['outbound'])
  const from = { email: 'desk@hotel.example', name: 'Front desk' }
  const html = '<p onclick="x()">Room <b>7</b></p><script>x()</script><img src="https://far.test/a.png">'
  const sent = await sendDirectly(api, {
    from,
    text: 'Room 7',
    html,
    replyTo: { email: 'help@hotel.example' },
  })
  const viewer = await signInAs(node, organizationId, 'viewer')
  const contentOf = async ({ id }: { id: string }) => {
    const { status, body } = await viewer.ask('GET', `/app/v1/submissions/${id}/content`)
    assert.equal(status, 200)
    return body.content
  }
  const { html: safe, ...shown } = await contentOf(sent)
  assert.deepEqual(shown, {
    to: [{ email: 'ada@far.test', name: 'Ada' }],
    replyTo: { email: 'help@hotel.example' },
    text: 'Room 7',
    remoteImages: 1,
    cut: false,
    keptUntil: new Date(Date.parse(sent.createdAt) + lifetimeMs).toISOString(),
  })
  assert.match(safe, /<p>Room <b>7<\/b><\/p>.*data-remote-src/)
  assert.doesNotMatch(safe, /script|onclick| src=/)

  const text = 'Ä'.repeat(300_000)
  const long = await contentOf(await sendDirectly(api, { from, text, html: `<p>${text}</p>` }))
  assert.deepEqual([long.cut, long.text.length], [true, 1 << 18])
  assert.ok(long.html.length < 300_000)

  const inbox = await api.createInbox()
  const { submission } = await send(api, inbox, ['ada@far.test'])
  assert.equal(await contentOf(submission), null, 'the content of a message is the message')
  const other = await node.createCaller()
  const stranger = await signInAs(node, other.organizationId, 'owner')
  const theirs = await stranger.ask('GET', `/app/v1/submissions/${sent.id}/content`)
  const nobodys = await stranger.ask('GET', `/app/v1/submissions/${randomUUID()}/content`)
  assert.deepEqual([theirs.status, theirs.body.message], [404, nobodys.body.message])

  const later = new Clock()
  later.advance(lifetimeMs)
  await purgeContents({ ...node.foundation, clock: later }, lifetimeMs, 100)
  assert.equal(await contentOf(sent), null)
})
