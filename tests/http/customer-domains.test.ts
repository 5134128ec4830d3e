// Tests customers' domains over HTTP: inboxes on the domains, and sends through them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Inbox, Submission } from '../support/api.ts'
import { proveDomain, registerDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { nextKey, send } from './sending.ts'
import { type Caller, setStage } from './stage.ts'

const dns = await DnsServer.start()
const stage = await setStage({ after }, { dnsServer: dns.address })
after(() => dns.close())

type Refused = { error: string; message: string }
type Sent = Submission & {
  replayed: boolean
  from: { email: string; name?: string }
  queueId: null
  metadata: object
}

const open = ({ api }: Pick<Caller, 'api'>, body: object) =>
  api.call<Inbox & Refused & Record<string, unknown>>('/v1/inboxes', { method: 'POST', body })

const mail = { to: [{ email: 'someone@far.test' }], subject: 'Hello', text: 'There' }

function post({ api }: Pick<Caller, 'api'>, body: object, idempotencyKey = nextKey()) {
  return api.call<Sent & Refused>('/v1/send', { method: 'POST', body, idempotencyKey })
}

const outcome = ({ status, body }: { status: number; body: { error?: string } }) => [status, body.error]

test('an inbox on a proved domain uses none of the managed allowance', async () => {
  const caller = await stage.createCaller({ limits: { managedStarter: 0 } })
  const domain = await proveDomain(caller.api, dns, 'green.example', ['ownership'])
  const { status, body } = await open(caller, { domainId: domain.id, localPart: 'support' })
  assert.equal(status, 201)
  assert.deepEqual(
    [body['address'], body['domainId'], body['domainKind'], body['domain']],
    ['support@green.example', domain.id, 'customer', 'green.example'],
  )
  const random = await open(caller, { domainId: domain.id.toUpperCase() })
  assert.match(random.body.address, /^[a-z]+-[a-z]+-\d+@green\.example$/)
  const me = await caller.api.want<{ managedStarter: { used: number } }>('/v1/me')
  assert.equal(me.managedStarter.used, 0)
  const listed = await caller.api.want<{ inboxes: Inbox[] }>(`/v1/inboxes?domainId=${domain.id}`)
  assert.deepEqual(
    listed.inboxes.map(({ id }) => id),
    [random.body.id, body.id],
  )
  assert.deepEqual(outcome(await open(caller, {})), [403, 'managed_allowance_exhausted'])
})

test('check 68: an inbox needs a proved domain of its own organization', async () => {
  const [caller, stranger] = [await stage.createCaller(), await stage.createCaller()]
  const theirs = await proveDomain(stranger.api, dns, 'theirs.example', ['ownership'])
  const unproved = await registerDomain(caller.api, 'unproved.example')
  const unknown = '00000000-0000-7000-8000-000000000000'
  const answers = [await open(caller, { domainId: theirs.id }), await open(caller, { domainId: unknown })]
  assert.deepEqual(answers.map(outcome), [
    [404, 'not_found'],
    [404, 'not_found'],
  ])
  assert.deepEqual(answers[0]!.body, answers[1]!.body)
  assert.deepEqual(outcome(await open(caller, { domainId: unproved.id })), [409, 'domain_not_verified'])
  assert.deepEqual(outcome(await open(caller, { domainId: 'x' })), [400, 'invalid_request'])

  const inbox = await caller.api.createInbox()
  const restricted = await caller.createKey({ inboxIds: [inbox.id as never] })
  const own = await proveDomain(caller.api, dns, 'own.example', ['ownership'])
  assert.deepEqual(outcome(await open(restricted, { domainId: own.id })), [403, 'inbox_not_allowed'])
  const taken = { domainId: own.id, localPart: 'sales' }
  assert.equal((await open(caller, taken)).status, 201)
  assert.deepEqual(outcome(await open(caller, taken)), [409, 'address_taken'])
})

test('check 75: a customer’s domain reserves only the names that the service needs', async (t) => {
  const caller = await stage.createCaller()
  const { id: domainId } = await proveDomain(caller.api, dns, 'names.example', ['ownership'])
  const reserved =
    'postmaster abuse mailer-daemon bounce bounces fbl bounce-x bounces-x Post.Master f.b.l'.split(' ')
  const free = 'support sales admin info noreply no-reply dmarc root bouncer hostmaster unsubscribe'.split(
    ' ',
  )
  for (const localPart of reserved)
    await t.test(`${localPart} is reserved`, async () =>
      assert.deepEqual(outcome(await open(caller, { domainId, localPart })), [400, 'reserved_local_part']),
    )
  for (const localPart of free)
    await t.test(`${localPart} is the customer's`, async () =>
      assert.equal((await open(caller, { domainId, localPart })).status, 201),
    )
})

test('check 75: inboxes per domain are exact under parallel creation, and a deletion frees one', async () => {
  const caller = await stage.createCaller({ limits: { inboxesPerDomain: 3 } })
  const { id: domainId } = await proveDomain(caller.api, dns, 'few.example', ['ownership'])
  const answers = await Promise.all(Array.from({ length: 12 }, () => open(caller, { domainId })))
  const opened = answers.filter(({ status }) => status === 201)
  assert.equal(opened.length, 3)
  const refused = answers.filter(({ status }) => status !== 201)
  assert.deepEqual(refused.map(outcome), Array(9).fill([403, 'limit_reached']))
  assert.equal((await open(caller, {})).status, 201)
  await caller.api.call(`/v1/inboxes/${opened[0]!.body.id}`, { method: 'DELETE' })
  assert.equal((await open(caller, { domainId })).status, 201)
})

test('a domain with inboxes cannot be deleted, and its next owner can use a deleted inbox’s address', async () => {
  const [caller, later] = [await stage.createCaller(), await stage.createCaller()]
  const domain = await proveDomain(caller.api, dns, 'sold.example', ['ownership'])
  const { body: inbox } = await open(caller, { domainId: domain.id, localPart: 'info' })
  const remove = () => caller.api.call(`/v1/domains/${domain.id}`, { method: 'DELETE' })
  assert.deepEqual(outcome(await remove()), [409, 'domain_in_use'])
  await caller.api.call(`/v1/inboxes/${inbox.id}`, { method: 'DELETE' })
  assert.equal((await remove()).status, 204)
  const { id: domainId } = await proveDomain(later.api, dns, 'sold.example', ['ownership'])
  assert.equal((await open(later, { domainId, localPart: 'info' })).status, 201)
  assert.deepEqual(outcome(await open(later, { domainId, localPart: 'info' })), [409, 'address_taken'])
})

test('POST /v1/send answers the submission with replayed, and reads show the same submission', async () => {
  const caller = await stage.createCaller()
  await proveDomain(caller.api, dns, 'shop.example', ['outbound'])
  const body = {
    ...mail,
    from: { email: 'Orders@Shop.Example', name: 'The Shop' },
    to: [{ email: 'A@far.test' }, { email: 'a@FAR.test' }, { email: 'b@far.test', name: 'B' }],
    replyTo: { email: 'help@shop.example' },
    headers: { 'x-campaign': 'spring', 'x-campaign-id': '', 'x-entity-ref-id': 'é'.repeat(998) },
    metadata: { order: 7 },
    purpose: 'transactional',
  }
  const first = await post(caller, body, 'send-once-1')
  assert.equal(first.status, 202)
  const { replayed, ...submission } = first.body
  assert.equal(replayed, false)
  assert.deepEqual(Object.keys(first.body).sort(), [
    ...['createdAt', 'failureCode', 'from', 'id', 'metadata', 'purpose', 'queueId', 'recipients', 'replayed'],
    ...['response', 'status', 'subject', 'updatedAt'],
  ])
  assert.deepEqual(submission.from, { email: 'Orders@shop.example', name: 'The Shop' })
  assert.deepEqual(
    submission.recipients.map(({ email, status }) => [email, status]),
    [
      ['A@far.test', 'pending'],
      ['b@far.test', 'pending'],
    ],
  )
  assert.deepEqual(await caller.api.want(`/v1/submissions/${submission.id}`), submission)
  const { submissions } = await caller.api.want<{ submissions: object[] }>('/v1/submissions')
  assert.deepEqual(submissions, [submission])
  const { events } = await caller.api.want<{ events: { type: string }[] }>(
    `/v1/submissions/${submission.id}/events`,
  )
  assert.deepEqual(
    events.map(({ type }) => type),
    ['accepted'],
  )
  const again = await post(caller, body, 'send-once-1')
  assert.deepEqual([again.status, again.body], [202, { ...submission, replayed: true }])
  const other = await post(caller, { ...body, subject: 'Other' }, 'send-once-1')
  assert.deepEqual(outcome(other), [409, 'idempotency_key_reused'])
})

test('check 72: many parallel sends with one key are one submission, and each operation has its own keys', async () => {
  const caller = await stage.createCaller()
  const domain = await proveDomain(caller.api, dns, 'once.example', ['outbound'])
  const body = { ...mail, from: { email: 'x@once.example' } }
  const answers = await Promise.all(Array.from({ length: 30 }, () => post(caller, body, 'the-same-key')))
  assert.equal(new Set(answers.map(({ body: { id } }) => id)).size, 1)
  assert.equal(answers.filter(({ body: { replayed } }) => !replayed).length, 1)
  const { body: inbox } = await open(caller, { domainId: domain.id, localPart: 'x' })
  const fromInbox = await caller.api.call(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    body: mail,
    idempotencyKey: 'the-same-key',
  })
  assert.equal(fromInbox.status, 202)
  assert.equal((await post(caller, body, 'short')).body.error, 'invalid_idempotency_key')
})

test('check 73: POST /v1/send follows its rules exactly', async (t) => {
  const caller = await stage.createCaller({ limits: { recipientsPerMessage: 3 } })
  await proveDomain(caller.api, dns, 'letter.example', ['outbound'])
  const good = { ...mail, from: { email: 'x@letter.example' } }
  const { text: _, ...bodiless } = good
  const people = (count: number) => Array.from({ length: count }, (_, n) => ({ email: `p${n}@far.test` }))
  const headers = (values: object) => ({ ...good, headers: values })
  const cases: [name: string, body: object, status: number, error?: string][] = [
    ['html alone', { ...bodiless, html: '<p>x</p>' }, 202],
    ['neither text nor html', bodiless, 400, 'invalid_request'],
    ['no from', mail, 400, 'invalid_request'],
    ['no recipient', { ...good, to: [] }, 400, 'invalid_request'],
    ['more recipients than the organization may', { ...good, to: people(4) }, 413, 'too_many_recipients'],
    ['1000 recipients', { ...good, to: people(1000) }, 413, 'too_many_recipients'],
    ['1001 recipients', { ...good, to: people(1001) }, 400, 'invalid_request'],
    ['a subject of 998', { ...good, subject: 's'.repeat(998) }, 202],
    ['a subject of 999', { ...good, subject: 's'.repeat(999) }, 400, 'invalid_request'],
    ['a blank subject', { ...good, subject: ' \u00a0\u200b' }, 400, 'invalid_request'],
    ['a header of 998', headers({ 'x-campaign': 'c'.repeat(998) }), 202],
    ['a header of 999', headers({ 'x-campaign': 'c'.repeat(999) }), 400, 'invalid_request'],
    ['a header of 998 emoji', headers({ 'x-campaign': '🙂'.repeat(998) }), 202],
    ['a tab in a header', headers({ 'x-campaign': 'a\tb' }), 202],
    ['a line break in a header', headers({ 'x-campaign': 'a\nBcc: b@far.test' }), 400, 'invalid_request'],
    ['a carriage return at its end', headers({ 'x-campaign-id': 'a\r' }), 400, 'invalid_request'],
    ['another header', headers({ 'x-other': 'a' }), 400, 'invalid_request'],
    ['a header in capitals', headers({ 'X-Campaign': 'a' }), 400, 'invalid_request'],
    ['a number as header', headers({ 'x-campaign': 7 }), 400, 'invalid_request'],
    ['no headers', headers({}), 202],
    ['cc', { ...good, cc: people(1) }, 400, 'invalid_request'],
    ['bcc', { ...good, bcc: people(1) }, 400, 'invalid_request'],
    ['attachments', { ...good, attachments: [] }, 400, 'invalid_request'],
    ['too much content', { ...good, text: 'x'.repeat(64 * 1024 + 1) }, 413, 'message_too_large'],
    ['check 51: marketing', { ...good, purpose: 'marketing' }, 403, 'marketing_not_available'],
    ['another purpose', { ...good, purpose: 'unclassified' }, 400, 'invalid_request'],
  ]
  for (const [name, body, status, error] of cases)
    await t.test(`${name} is ${status}`, async () =>
      assert.deepEqual(outcome(await post(caller, body)), [status, error]),
    )
})

test('check 41, 69: only an allowed key sends through a domain', async (t) => {
  const [caller, stranger] = [await stage.createCaller(), await stage.createCaller()]
  const domain = await proveDomain(caller.api, dns, 'mine.example', ['outbound'])
  await proveDomain(caller.api, dns, 'reads.example', ['inbound'])
  await registerDomain(caller.api, 'claimed.example')
  await proveDomain(stranger.api, dns, 'foreign.example', ['outbound'])
  const { body: inbox } = await open(caller, { domainId: domain.id })
  const managed = await caller.api.createInbox()
  const from = (email: string) => ({ ...mail, from: { email } })
  const restricted = await caller.createKey({ inboxIds: [inbox.id as never] })
  const replying = await caller.createKey({ sendMode: 'reply_only' })
  const confined = await caller.createKey({ allowedRecipientDomains: ['near.test'] })
  const scopeless = await caller.createKey({ scopes: ['mailbox:send'] })
  const cases: [name: string, key: Pick<Caller, 'api'>, body: object, status: number, error?: string][] = [
    ['the proved domain', caller, from('x@mine.example'), 202],
    ['in capitals, quoted', caller, from('"x y"@MINE.example'), 202],
    ['a subdomain of it', caller, from('x@sub.mine.example'), 403, 'sender_not_allowed'],
    ['its return-path host', caller, from('x@bounce.mine.example'), 403, 'sender_not_allowed'],
    ['its parent', caller, from('x@example'), 403, 'sender_not_allowed'],
    ['one only proved for receiving', caller, from('x@reads.example'), 403, 'sender_not_allowed'],
    ['one only claimed', caller, from('x@claimed.example'), 403, 'sender_not_allowed'],
    ["another organization's", caller, from('x@foreign.example'), 403, 'sender_not_allowed'],
    [
      "another organization's, hidden in quotes",
      caller,
      from('"x@mine.example"@foreign.example'),
      403,
      'sender_not_allowed',
    ],
    ['the managed domain', caller, from(managed.address), 403, 'sender_not_allowed'],
    ['a key restricted to inboxes', restricted, from(inbox.address), 403, 'inbox_not_allowed'],
    ['a key that may only reply', replying, from('x@mine.example'), 403, 'send_mode_reply_only'],
    [
      'a key confined to other recipients',
      confined,
      from('x@mine.example'),
      403,
      'recipient_domain_not_allowed',
    ],
    ['a key for mailboxes alone', scopeless, from('x@mine.example'), 403, 'insufficient_scope'],
    [
      'marketing from anywhere',
      caller,
      { ...from('x@far.test'), purpose: 'marketing' },
      403,
      'marketing_not_available',
    ],
  ]
  for (const [name, key, body, status, error] of cases)
    await t.test(`a send is answered with ${status}: ${name}`, async () =>
      assert.deepEqual(outcome(await post(key, body)), [status, error]),
    )
  await t.test('a restricted key sees none of it', async () => {
    const { body: sent } = await post(caller, from('x@mine.example'))
    const seen = await restricted.api.call<Refused>(`/v1/submissions/${sent.id}`)
    assert.deepEqual(outcome(seen), [403, 'inbox_not_allowed'])
    const { submissions } = await restricted.api.want<{ submissions: object[] }>('/v1/submissions')
    assert.deepEqual(submissions, [])
    assert.equal((await stranger.api.call(`/v1/submissions/${sent.id}`)).status, 404)
  })
})

test('check 50: sends through a domain count against the organization’s limits', async () => {
  const caller = await stage.createCaller({ limits: { messagesPerMinute: 2 } })
  const domain = await proveDomain(caller.api, dns, 'limits.example', ['outbound'])
  const { body: inbox } = await open(caller, { domainId: domain.id })
  await send(caller.api, inbox)
  const body = { ...mail, from: { email: 'x@limits.example' } }
  const answers = await Promise.all(Array.from({ length: 5 }, () => post(caller, body)))
  assert.equal(answers.filter(({ status }) => status === 202).length, 1)
  assert.equal(answers.filter((answer) => answer.body.error === 'send_limit_exceeded').length, 4)
})

test('a submission is cancelled while it waits', async () => {
  const [caller, stranger] = [await stage.createCaller(), await stage.createCaller()]
  await proveDomain(caller.api, dns, 'cancel.example', ['outbound'])
  const { body: sent } = await post(caller, { ...mail, from: { email: 'x@cancel.example' } })
  const { submission } = await send(caller.api, await caller.api.createInbox())
  for (const { id } of [sent, submission]) {
    const path = `/v1/submissions/${id}/cancel`
    assert.equal((await stranger.api.call(path, { method: 'POST' })).status, 404)
    const reading = await caller.createKey({ scopes: ['delivery:read'] })
    assert.deepEqual(outcome(await reading.api.call<Refused>(path, { method: 'POST' })), [
      403,
      'insufficient_scope',
    ])
    const sending = await caller.createKey({ scopes: [id === sent.id ? 'delivery:send' : 'mailbox:send'] })
    type Cancelled = Submission & { failureCode: string }
    const cancelled = await sending.api.want<Cancelled>(path, { method: 'POST' })
    assert.deepEqual([cancelled.status, cancelled.failureCode], ['failed', 'cancelled'])
    assert.deepEqual(await caller.api.want(path, { method: 'POST' }), cancelled)
    const { events } = await caller.api.want<{ events: { type: string }[] }>(`/v1/submissions/${id}/events`)
    assert.deepEqual(
      events.map(({ type }) => type),
      ['accepted', 'cancelled'],
    )
  }
})
