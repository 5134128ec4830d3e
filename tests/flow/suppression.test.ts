// Suppressed addresses: their causes, that no attempt follows, and how validation uses them. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import type { OrganizationId } from '../../src/base/ids.ts'
import { pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import type { ValidationResult } from '../../src/flow/validation/validate.ts'
import { sameAddressKey } from '../../src/mail/address.ts'
import { insertSuppression } from '../../src/store/sending/suppressions.ts'
import type { Acceptance, Api, Inbox, Refusal, Submission } from '../support/api.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const dns = await DnsServer.start()
place.after(() => dns.close())
const sink = await startSink(place)
const node = await startNode(place, {
  env: {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_DNS: dns.address,
    POSTHORN_MAIL_HOST: 'mx.posthorn.test',
  },
})

interface Stage {
  organizationId: string
  api: Api
  inbox: Inbox
}

/** An organization with an inbox. The far server takes everything. */
async function setStage(limits = {}): Promise<Stage> {
  sink.rule = () => null
  const { organizationId, api } = await node.createCaller({ limits })
  return { organizationId, api, inbox: await api.createInbox() }
}

/** The recipients that have received mail from this address. */
const reachedBy = (from: string) =>
  sink.copies.filter(({ raw }) => raw.includes(from)).map(({ recipient }) => recipient)

/** Sends. The caller checks the answer. */
function trySend({ api, inbox }: Stage, to: string[], key: string = randomUUID()) {
  const body = { to: to.map((email) => ({ email })), subject: 'Test', text: 'Hello.' }
  const call = { method: 'POST', idempotencyKey: key, body }
  return api.call<Acceptance & Refusal>(`/v1/inboxes/${inbox.id}/messages`, call)
}

async function suppressedBy(api: Api): Promise<string[]> {
  const { suppressions } = await api.want<{ suppressions: { email: string; reason: string }[] }>(
    '/v1/suppressions',
  )
  return suppressions.map(({ email, reason }) => `${email} ${reason}`).sort()
}

const edit = (api: Api, method: 'POST' | 'DELETE', email: string) =>
  api.want('/v1/suppressions', { method, body: { email }, status: method === 'POST' ? 201 : 204 })

async function eventTypes(api: Api, submissionId: string): Promise<string[]> {
  const path = `/v1/submissions/${submissionId}/events?limit=100`
  const { events } = await api.want<{ events: { type: string }[] }>(path)
  return events.map(({ type }) => type)
}

test('check 47: a reply about the address suppresses it, and a reply about other things does not', async () => {
  const answers: Record<string, string> = {
    'gone@far.test': '550 5.1.1 no such user',
    'moved@far.test': '551 5.1.6 moved without an address',
    'unknown@far.test': '550 User unknown',
    'policy@far.test': '550 5.7.1 denied',
    'full@far.test': '552 5.2.2 mailbox full',
    'closed@far.test': '550 5.2.1 user unknown or disabled',
    'route@far.test': '550 5.4.4 unable to route',
    'later@far.test': '450 4.2.2 mailbox full',
    'grey@far.test': '451 4.7.1 greylisted, user unknown to us yet',
  }
  const stage = await setStage()
  sink.rule = ({ stage: step, command }) =>
    step === 'rcpt' ? (answers[/<([^>]*)>/.exec(command)![1]!] ?? null) : null
  const to = Object.keys(answers)
  const { submission } = await send(stage.api, stage.inbox, to)
  const states = [...Array(7).fill('bounced'), 'deferred', 'deferred']
  const ended = await untilStates(stage.api, submission.id, ...states)
  const full = ended.recipients.find(({ email }) => email === 'full@far.test')
  assert.equal(full!.failureCode, 'soft_bounce_expired')
  assert.deepEqual(await suppressedBy(stage.api), [
    'gone@far.test hard_bounce',
    'moved@far.test hard_bounce',
    'unknown@far.test hard_bounce',
  ])
  const { suppressions } = await stage.api.want<{ suppressions: { submissionId: string }[] }>(
    '/v1/suppressions',
  )
  for (const { submissionId } of suppressions) assert.equal(submissionId, submission.id)
  // The suppression does not apply to another organization.
  const { api, organizationId } = await node.createCaller()
  assert.deepEqual(await suppressedBy(api), [])
  const told = await node.foundation.db.query<{ type: string; email: string }>(
    `select i->>'type' as type, i->'content'->'suppression'->>'email' as email
    from outbox o, jsonb_array_elements(o.items) i
    where i->>'type' = 'suppression.created' and o.organization_id = any($1) order by 2`,
    [[stage.organizationId, organizationId]],
  )
  assert.deepEqual(
    told.map(({ email }) => email),
    ['gone@far.test', 'moved@far.test', 'unknown@far.test'],
  )
})

test('check 46: a suppressed recipient, in any spelling, is never attempted, and shows why', async () => {
  const stage = await setStage()
  const { api, inbox } = stage
  await edit(api, 'POST', 'Gone@BÜCHER.example')
  const spellings = ['gone@xn--bcher-kva.example', 'GONE@bücher.EXAMPLE']
  for (const email of spellings) {
    const { status, body } = await trySend(stage, [email])
    assert.deepEqual([status, body.error], [422, 'all_recipients_suppressed'], email)
  }
  const { status, body } = await trySend(stage, ['fine@far.test', spellings[0]!])
  assert.equal(status, 202)
  const states = (submission: Submission) => submission.recipients.map((recipient) => recipient.status)
  assert.deepEqual(states(body.submission), ['pending', 'suppressed'])
  const ended = await untilStates(api, body.submission.id, 'delivered', 'suppressed')
  assert.deepEqual(
    [ended.status, (ended as Submission & { failureCode: string }).failureCode],
    ['partially_delivered', 'suppressed'],
  )
  assert.ok((await eventTypes(api, body.submission.id)).includes('suppressed'))
  assert.deepEqual(reachedBy(inbox.address), ['fine@far.test'])
  // A tag makes another address. Another organization has suppressed nothing.
  await trySend(stage, ['gone+tag@xn--bcher-kva.example'])
  const other = await node.createCaller()
  const sent = await send(other.api, await other.api.createInbox(), [spellings[0]!])
  await untilStates(other.api, sent.submission.id, 'delivered')
  await edit(api, 'DELETE', spellings[1]!)
  const again = await send(api, inbox, [spellings[0]!])
  await untilStates(api, again.submission.id, 'delivered')
})

test('check 46: an address suppressed after acceptance is not attempted, and a released one is', async () => {
  const { api, inbox } = await setStage()
  await send(api, inbox, ['first@far.test'])
  await pauseQueue(node.foundation, '@relay', 'paused')
  const waiting = await send(api, inbox, ['fine@far.test', 'gone@far.test', 'back@far.test'])
  for (const email of ['gone@far.test', 'back@far.test']) await edit(api, 'POST', email)
  await edit(api, 'DELETE', 'back@far.test')
  await pauseQueue(node.foundation, '@relay', 'running')
  const states = ['delivered', 'suppressed', 'delivered']
  const ended = await untilStates(api, waiting.submission.id, ...states)
  assert.equal(ended.status, 'partially_delivered')
  const copies = sink.copiesOf(waiting.message.internetMessageId).map(({ recipient }) => recipient)
  assert.deepEqual(copies.sort(), ['back@far.test', 'fine@far.test'])
  const types = await eventTypes(api, waiting.submission.id)
  assert.equal(types.filter((type) => type === 'suppressed').length, 1)
  const [row] = await node.foundation.db.query<{ attempts: number; onWire: boolean }>(
    `select attempts, claim_epoch is not null as "onWire" from delivery where submission_id = $1 and position = 1`,
    [waiting.submission.id],
  )
  assert.deepEqual(row, { attempts: 0, onWire: false })
})

test('check 46: a deferred recipient that is suppressed ends at its next attempt', async () => {
  const { api, inbox } = await setStage()
  sink.rule = ({ stage: step }) => (step === 'rcpt' ? '450 4.2.1 not now' : null)
  const { submission } = await send(api, inbox, ['slow@far.test'])
  await untilStates(api, submission.id, 'deferred')
  await edit(api, 'POST', 'slow@far.test')
  node.foundation.clock.advance(120_000)
  const ended = await untilStates(api, submission.id, 'suppressed')
  assert.deepEqual(
    [ended.status, (ended as Submission & { failureCode: string }).failureCode],
    ['failed', 'suppressed'],
  )
  // The earlier reply of the far server stays visible.
  assert.equal(ended.recipients[0]!.response, '450 4.2.1 not now')
})

test('check 46: suppressed recipients use no limit, and a replay returns the stored answer', async () => {
  const stage = await setStage({ recipientsPerDay: 2 })
  const { api } = stage
  const key = 'replayed-key-1'
  const first = await trySend(stage, ['a@far.test'], key)
  assert.equal(first.status, 202)
  await edit(api, 'POST', 'a@far.test')
  const replayed = await trySend(stage, ['a@far.test'], key)
  assert.deepEqual(
    [replayed.status, replayed.body.replayed, replayed.body.submission.id],
    [202, true, first.body.submission.id],
  )
  const mixed = await trySend(stage, ['a@far.test', 'b@far.test'])
  assert.equal(mixed.status, 202)
  assert.equal((await trySend(stage, ['c@far.test'])).body.error, 'send_limit_exceeded')
  // The limit would refuse it too, but waiting would not help.
  assert.equal((await trySend(stage, ['a@far.test'])).body.error, 'all_recipients_suppressed')
  assert.equal((await trySend(stage, ['A@far.test', 'a@FAR.test'])).body.error, 'all_recipients_suppressed')
})

type Names = 'to' | 'cc' | 'bcc'

/** How each operation sends to a first recipient, and to a second one in the given field. */
function makeSenders({ api, inbox }: Stage, from: string) {
  const post = (path: string, body: object) =>
    api.call<Refusal & Partial<Acceptance> & Partial<Submission>>(path, {
      method: 'POST',
      idempotencyKey: randomUUID(),
      body: { text: 'Hello.', ...body },
    })
  const named = (email: string) => [{ email }]
  const inInbox = (place: Names) => (first: string, second: string) => {
    const all = { to: [...named(first)], cc: [] as { email: string }[], bcc: [] as { email: string }[] }
    all[place].push(...named(second))
    const { to, cc, bcc } = all
    const copies = { ...(cc.length > 0 && { cc }), ...(bcc.length > 0 && { bcc }) }
    return post(`/v1/inboxes/${inbox.id}/messages`, { to, ...copies, subject: 'Test' })
  }
  const replying = async (first: string, second: string) => {
    const count = (await api.exported(inbox.id)).length
    const raw = Buffer.from(
      `From: ${first}\r\nTo: ${inbox.address}\r\nCc: ${second}\r\nSubject: Ask\r\n\r\nAsk\r\n`,
    )
    await sendMail(node.smtp, { from: first, to: inbox.address, raw })
    const asked = await until('the question', async () => (await api.exported(inbox.id))[count])
    const body = { targetMessageId: asked.id, replyAll: true }
    return await post(`/v1/threads/${asked.threadId}/replies`, body)
  }
  const through = (first: string, second: string) =>
    post('/v1/send', { from: { email: from }, to: [...named(first), ...named(second)], subject: 'Test' })
  return {
    'a message, in To': inInbox('to'),
    'a message, in Cc': inInbox('cc'),
    'a message, in Bcc': inInbox('bcc'),
    'a reply to all': replying,
    'POST /v1/send': through,
  }
}

test('check 46: every kind of send skips suppressed recipients, also those suppressed before the attempt', async (t) => {
  const stage = await setStage()
  const { api, inbox } = stage
  await proveDomain(api, dns, 'customer.test', ['outbound'])
  const senders = Object.entries(makeSenders(stage, 'news@customer.test'))
  await edit(api, 'POST', 'GONE@FAR.Test')
  const reached = () => [...reachedBy(inbox.address), ...reachedBy('news@customer.test')]
  const idOf = ({ status, body }: Awaited<ReturnType<(typeof senders)[0][1]>>, what: string) => {
    assert.equal(status, 202, `${what}: ${JSON.stringify(body)}`)
    return body.submission?.id ?? body.id!
  }
  for (const [what, sendTo] of senders)
    await t.test(`${what}: a recipient suppressed before is left out`, async () => {
      const id = idOf(await sendTo('fine@far.test', 'Gone@far.test'), what)
      await untilStates(api, id, 'delivered', 'suppressed')
      const refused = await sendTo('gone@FAR.test', 'gone@far.test')
      assert.deepEqual([refused.status, refused.body.error], [422, 'all_recipients_suppressed'])
    })
  assert.deepEqual(reached(), Array(senders.length).fill('fine@far.test'))
  for (const [index, [what, sendTo]] of senders.entries())
    await t.test(`${what}: a recipient suppressed since is left out`, async () => {
      const later = `later${index}@xn--bcher-kva.example`
      await pauseQueue(node.foundation, '@relay', 'paused')
      const id = idOf(await sendTo('fine@far.test', later), what)
      await edit(api, 'POST', `LATER${index}@BÜCHER.example`)
      await pauseQueue(node.foundation, '@relay', 'running')
      await untilStates(api, id, 'delivered', 'suppressed')
    })
  assert.deepEqual(reached(), Array(2 * senders.length).fill('fine@far.test'))
})

const answers: Record<string, string> = {
  'gone@far.test': '550 5.1.1 no such user',
  'full@far.test': '552 5.2.2 mailbox full',
  'strict@far.test': '550 5.7.1 this looks like spam',
}
const rule: Rule = ({ stage, command }) =>
  (stage === 'rcpt' && answers[/<([^>]*)>/.exec(command)![1]!.toLowerCase()]) || null

async function judged(api: Api, emails: string[]): Promise<[mailbox: boolean | null, reason: string][]> {
  const call = { method: 'POST', body: { emails } }
  const { results } = await api.want<{ results: ValidationResult[] }>('/v1/validate/bulk', call)
  return results.map(({ checks, reason }) => [checks.mailbox, reason])
}

test('check 79: an organization’s own deliveries and suppressions are evidence for itself alone', async () => {
  sink.rule = rule
  dns.set('far.test', { MX: [[10, 'mx.far.test']] })
  dns.set('mx.far.test', { A: ['8.8.1.1'] })
  const { api, organizationId } = await node.createCaller()
  const stranger = await node.createCaller()
  const people = ['fine@far.test', 'gone@far.test', 'full@far.test', 'strict@far.test']
  const nothing = people.map(() => [null, 'accepted'])
  assert.deepEqual(await judged(api, people), nothing)

  const inbox = await api.createInbox()
  const { submission } = await send(api, inbox, people)
  await untilStates(api, submission.id, 'delivered', 'bounced', 'bounced', 'bounced')
  const connections = sink.connections
  const after = [
    [true, 'accepted'],
    [false, 'mailbox_not_found'],
    [null, 'accepted'],
    [null, 'accepted'],
  ]
  assert.deepEqual(await judged(api, people), after)
  assert.deepEqual(
    await judged(
      api,
      people.map((email) => email.toUpperCase()),
    ),
    after,
  )
  assert.deepEqual(await judged(stranger.api, people), nothing)

  const suppressed = ['fine@far.test', 'new@far.test']
  await node.foundation.db.transaction(async (tx) => {
    for (const email of suppressed) {
      const row = { organizationId: organizationId as OrganizationId, addressKey: sameAddressKey(email) }
      await insertSuppression(
        tx,
        { ...row, email, reason: 'manual', note: null, since: null },
        node.foundation.clock.now(),
      )
    }
  })
  assert.deepEqual(await judged(api, ['Fine@far.test', 'new@far.test', 'other@far.test']), [
    [true, 'suppressed'],
    [null, 'suppressed'],
    [null, 'accepted'],
  ])
  assert.deepEqual(await judged(stranger.api, suppressed), [
    [null, 'accepted'],
    [null, 'accepted'],
  ])

  const reopened = 'gone@far.test'
  await node.foundation.db.query('delete from suppression where address_key = $1', [reopened])
  delete answers[reopened]
  const later = await send(api, inbox, [reopened])
  await untilStates(api, later.submission.id, 'delivered')
  assert.deepEqual(await judged(api, [reopened]), [[true, 'accepted']])
  assert.equal(sink.connections <= connections + 1, true, 'no address was asked about by SMTP')
})

test('an address of the managed domain is judged without DNS, as its mail is delivered', async () => {
  const { api } = await node.createCaller()
  const ada = await api.createInbox()
  const ben = await api.createInbox()
  const nobody = `caspar@${ben.address.split('@')[1]}`
  assert.deepEqual(await judged(api, [ben.address, nobody]), [
    [null, 'accepted'],
    [null, 'accepted'],
  ])
  const { submission } = await send(api, ada, [ben.address, nobody])
  await untilStates(api, submission.id, 'delivered', 'bounced')
  assert.deepEqual(await judged(api, [ben.address, nobody]), [
    [true, 'accepted'],
    [false, 'mailbox_not_found'],
  ])
})
