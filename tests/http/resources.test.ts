// Tests what the operations show, which callers may see it, and paging.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Acceptance, Inbox, Message, Submission } from '../support/api.ts'
import { nextKey, reply, send } from './sending.ts'
import { ask, type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })

const mail = `From: Far Person <someone@far.test>
To: us@inbox.test
Subject: Re: Hello
Message-ID: <far-1@far.test>
IN-REPLY
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

New text
--b
Content-Type: text/csv; name=a.csv
Content-Disposition: attachment; filename=a.csv

1,2
--b--
`

test('GET /v1/me returns the profile, and no part of the secret', async () => {
  const { api, organizationId, keyId, secret } = await stage.createCaller({ limits: { managedStarter: 7 } })
  await api.createInbox()
  const me = await api.want<Record<string, Record<string, unknown>>>('/v1/me')
  assert.deepEqual(Object.keys(me), ['organization', 'apiKey', 'managedStarter', 'platformLimits'])
  assert.equal(me['organization']?.['id'], organizationId)
  assert.deepEqual(me['apiKey'], {
    id: keyId,
    kind: 'agent',
    scopes: ['*'],
    inboxIds: null,
    allowedIps: null,
    sendMode: 'new_and_reply',
    allowedRecipientDomains: null,
    expiresAt: null,
    requestsPerMinute: 1_000_000,
  })
  assert.deepEqual(me['managedStarter'], { limit: 7, used: 1, remaining: 6 })
  assert.doesNotMatch(JSON.stringify(me), new RegExp(secret.slice(3, 12)))
})

test('names are kept without surrounding white space', async () => {
  const { api } = await stage.createCaller()
  const body = { displayName: ' Ada & Söhne\u00a0' }
  const { displayName } = await api.want<{ displayName: string }>('/v1/inboxes', {
    method: 'POST',
    body,
    status: 201,
  })
  assert.equal(displayName, 'Ada & Söhne')
})

test('a conversation is sent, received, threaded, answered and deleted', async (t) => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox('us')
  const sent = await send(api, inbox, {
    bcc: [{ email: 'hidden@far.test' }],
    metadata: { a: 1, b: null, c: 'x', d: true },
  })
  await stage.receive(
    'us@inbox.test',
    mail.replace('IN-REPLY', `In-Reply-To: ${sent.message.internetMessageId}`),
  )
  const { messages } = await api.want<{ messages: Message[] }>(
    `/v1/inboxes/${inbox.id}/messages?direction=inbound`,
  )
  const received = messages[0]!

  await t.test('a sent message is read as it was answered', async () => {
    assert.deepEqual(await api.want(`/v1/messages/${sent.message.id}`), sent.message)
    assert.equal(sent.replayed, false)
    assert.equal('attachments' in sent.message || 'html' in sent.message, false)
    assert.deepEqual((sent.message as unknown as { bcc: object }).bcc, [{ email: 'hidden@far.test' }])
    assert.deepEqual(sent.message.delivery, {
      submissionId: sent.submission.id,
      status: 'submitted',
      failureCode: null,
    })
    assert.deepEqual((sent.message as unknown as { metadata: object }).metadata, {
      a: 1,
      b: null,
      c: 'x',
      d: true,
    })
  })
  await t.test('the sent message has its submission and events', async () => {
    const submission = await api.want<Submission & { queueId: null; response: null }>(
      `/v1/submissions/${sent.submission.id}`,
    )
    assert.deepEqual(submission, sent.submission)
    assert.deepEqual([submission.status, submission.queueId, submission.response], ['pending', null, null])
    assert.deepEqual(
      submission.recipients.map(({ status }) => status),
      ['pending', 'pending'],
    )
    const events = await api.want<{ events: { type: string; submissionId: string }[] }>(
      `/v1/submissions/${sent.submission.id}/events`,
    )
    assert.deepEqual(
      events.events.map(({ type, submissionId }) => [type, submissionId]),
      [['accepted', sent.submission.id]],
    )
  })
  await t.test('a received message is read with its fields and attachment', () => {
    assert.equal(received.threadId, sent.message.threadId)
    assert.equal(received.inReplyTo, sent.message.internetMessageId)
    assert.deepEqual(received.from, { email: 'someone@far.test', name: 'Far Person' })
    assert.equal(received.text.trim(), 'New text')
    const { inboundSecurity } = received as unknown as { inboundSecurity: object }
    assert.deepEqual(inboundSecurity, {
      trust: 'untrusted',
      smtp: {
        remoteIp: '192.0.2.7',
        helo: 'far.test',
        tls: { encrypted: false, protocol: 'none', cipher: 'none' },
      },
      // DNS does not answer on this stage.
      authentication: { spf: 'temperror', dkim: 'none', dmarc: 'temperror' },
      attachments: 'unscanned',
      content: { hiddenText: 0, invisibleCharacters: 0, bidiOverrides: 0, textDiffersFromHtml: false },
    })
    const [attachment] = received.attachments ?? []
    assert.equal(attachment?.id, `att_${received.id.slice(4)}_1`)
    assert.deepEqual([attachment?.filename, attachment?.contentType], ['a.csv', 'text/csv'])
  })
  await t.test('the received message shows Rspamd’s findings', async () => {
    const spam = { score: 6.5, action: 'add header', symbols: ['OFFER'] }
    await stage.db.query(
      `update message set security = security || jsonb_build_object('spam', $2::jsonb) where id = $1`,
      [received.id, JSON.stringify(spam)],
    )
    const { inboundSecurity } = await api.want<{ inboundSecurity: { spam: object } }>(
      `/v1/messages/${received.id}`,
    )
    assert.deepEqual(inboundSecurity.spam, spam)
  })
  await t.test('the received message has a source for its own organization', async () => {
    const { secret } = await stage.createCaller()
    assert.equal((await ask(stage, 'GET', `/v1/messages/${received.id}/source`, { secret })).status, 404)
    const bytes = await api.bytes(`/v1/messages/${received.id}/source`)
    assert.match(bytes.toString(), /^Return-Path: <someone@far\.test>\r\n/)
    assert.ok(bytes.toString().endsWith('\r\n1,2\r\n--b--\r\n'))
    assert.equal((await api.call(`/v1/messages/${sent.message.id}/source`)).status, 404)
  })
  await t.test('an answer joins the thread', async () => {
    const { status, body } = await reply(api, received.threadId, received.id)
    assert.equal(status, 202)
    assert.deepEqual(body.message.to, [{ email: 'someone@far.test', name: 'Far Person' }])
    assert.equal(body.message.inReplyTo, '<far-1@far.test>')
    const thread = await api.want<{ messages: Message[]; messageCount: number }>(
      `/v1/threads/${received.threadId}`,
    )
    assert.deepEqual(
      thread.messages.map(({ id }) => id),
      [sent.message.id, received.id, body.message.id],
    )
    assert.equal(thread.messageCount, 3)
  })
  await t.test('lists of threads have no messages', async () => {
    const { threads } = await api.want<{ threads: object[] }>(`/v1/inboxes/${inbox.id}/threads`)
    assert.deepEqual(threads.map(Object.keys), [
      ['id', 'inboxId', 'subject', 'participants', 'messageCount', 'lastMessageAt'],
    ])
  })
  await t.test('check 77: a deleted message is gone, and deleting it again succeeds', async () => {
    for (const _ of [1, 2]) await api.want(`/v1/messages/${received.id}`, { method: 'DELETE', status: 204 })
    assert.equal((await api.call(`/v1/messages/${received.id}`)).status, 404)
    for (const _ of [1, 2]) await api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
    const gone: [path: string, status: number, error: string][] = [
      [`/v1/inboxes/${inbox.id}`, 404, 'not_found'],
      [`/v1/inboxes/${inbox.id}/export`, 410, 'inbox_deleted'],
      [`/v1/inboxes/${inbox.id}/messages`, 404, 'not_found'],
      [`/v1/inboxes/${inbox.id}/threads`, 404, 'not_found'],
      [`/v1/threads/${received.threadId}`, 404, 'not_found'],
      [`/v1/messages/${sent.message.id}`, 404, 'not_found'],
    ]
    for (const [path, status, error] of gone) {
      const answer = await api.call(path)
      assert.deepEqual([answer.status, answer.body.error], [status, error], path)
    }
    assert.equal((await api.want<Submission>(`/v1/submissions/${sent.submission.id}`)).status, 'failed')
  })
})

test('an inbox that writes to itself appears once in the thread', async () => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const { message } = await send(api, inbox, { to: [{ email: inbox.address }, { email: 'a@far.test' }] })
  const { participants } = await api.want<{ participants: string[] }>(`/v1/threads/${message.threadId}`)
  assert.deepEqual(participants, [inbox.address, 'a@far.test'])
})

test('a source is sent with headers that keep browsers from running it', async () => {
  const { api, secret } = await stage.createCaller()
  const inbox = await api.createInbox('headers')
  await stage.receive('headers@inbox.test', mail.replace('IN-REPLY', 'X-A: b'))
  const [message] = await api.exported(inbox.id)
  const response = await fetch(`${stage.base}/v1/messages/${message!.id}/source`, {
    headers: { 'x-api-key': secret },
  })
  const bytes = await response.bytes()
  assert.equal(response.headers.get('content-type'), 'message/rfc822')
  assert.equal(response.headers.get('cache-control'), 'private, no-store')
  assert.equal(response.headers.get('content-security-policy'), "default-src 'none'; sandbox")
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(response.headers.get('content-length'), String(bytes.length))
  assert.match(
    response.headers.get('content-disposition') ?? '',
    /^attachment; filename="msg_[a-f0-9]{24}\.eml"; filename\*=UTF-8''/,
  )
})

interface Own {
  caller: Caller
  inbox: Inbox
  accepted: Acceptance
}

async function own(): Promise<Own> {
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  return { caller, inbox, accepted: await send(caller.api, inbox) }
}

/** Lists the operations that name a resource. */
function operationsOn({
  inbox,
  accepted: { message, submission },
}: Own): [method: string, path: string, body?: object][] {
  return [
    ['GET', `/v1/inboxes/${inbox.id}`],
    ['GET', `/v1/inboxes/${inbox.id}/export`],
    ['GET', `/v1/inboxes/${inbox.id}/messages`],
    ['GET', `/v1/inboxes/${inbox.id}/threads`],
    ['POST', `/v1/inboxes/${inbox.id}/messages`, { to: [{ email: 'a@far.test' }], subject: 'S', text: 'T' }],
    ['GET', `/v1/messages/${message.id}`],
    ['GET', `/v1/messages/${message.id}/source`],
    ['GET', `/v1/threads/${message.threadId}`],
    ['POST', `/v1/threads/${message.threadId}/replies`, { targetMessageId: message.id, text: 'T' }],
    ['GET', `/v1/submissions/${submission.id}`],
    ['GET', `/v1/submissions/${submission.id}/events`],
    ['DELETE', `/v1/inboxes/${inbox.id}`],
    ['DELETE', `/v1/messages/${message.id}`],
  ]
}

test('check 68: another organization’s ids are answered like unknown ids', async (t) => {
  const [ours, theirs] = [await own(), await own()]
  const nobody = {
    ...theirs,
    inbox: { ...theirs.inbox, id: `inb_${'0'.repeat(24)}` },
    accepted: {
      ...theirs.accepted,
      message: { ...theirs.accepted.message, id: `msg_${'0'.repeat(24)}`, threadId: `thr_${'0'.repeat(24)}` },
      submission: { ...theirs.accepted.submission, id: '00000000-0000-0000-0000-000000000000' },
    },
  }
  const unknown = operationsOn(nobody)
  for (const [index, [method, path, body]] of operationsOn(theirs).entries())
    await t.test(`${method} ${path.replace(/[0-9a-f-]{20,}/g, '…')} answers like an unknown id`, async () => {
      const call = { method, ...(body && { body, idempotencyKey: `foreign-${index}` }) }
      const answer = await ours.caller.api.call(path, call)
      const [, unknownPath] = unknown[index]!
      const reference = await ours.caller.api.call(unknownPath, {
        ...call,
        idempotencyKey: `unknown-${index}`,
      })
      assert.equal(answer.status, method === 'DELETE' ? 204 : 404)
      assert.deepEqual([answer.status, answer.body], [reference.status, reference.body])
    })
  await t.test('their rows are unchanged', async () => {
    assert.equal((await theirs.caller.api.call(`/v1/messages/${theirs.accepted.message.id}`)).status, 200)
    assert.equal((await theirs.caller.api.exported(theirs.inbox.id)).length, 1)
  })
  await t.test('our thread refuses their message as target', async () => {
    const { status, body } = await reply(
      ours.caller.api,
      ours.accepted.message.threadId,
      theirs.accepted.message.id,
    )
    assert.deepEqual([status, body.error], [404, 'not_found'])
  })
  await t.test('their inbox as a filter shows no rows', async () => {
    const { submissions } = await ours.caller.api.want<{ submissions: [] }>(
      `/v1/submissions?inboxId=${theirs.inbox.id}`,
    )
    assert.deepEqual(submissions, [])
  })
})

test('check 68: a key restricted to inboxes cannot use others', async (t) => {
  const theirs = await own()
  const other = await theirs.caller.api.createInbox()
  const { api } = await theirs.caller.createKey({ inboxIds: [other.id as never] })
  await send(api, other)
  for (const [method, path, body] of operationsOn(theirs))
    await t.test(`${method} ${path.replace(/[0-9a-f-]{20,}/g, '…')} is 403`, async () => {
      const answer = await api.call(path, {
        method,
        ...(body && { body, idempotencyKey: nextKey() }),
      })
      // A sent message has no source for any caller.
      assert.deepEqual([answer.status, answer.body.error], [403, 'inbox_not_allowed'])
    })
  await t.test('opening an inbox is 403, and lists show only its own inbox', async () => {
    assert.equal(
      (await api.call('/v1/inboxes', { method: 'POST', body: {} })).body.error,
      'inbox_not_allowed',
    )
    const { inboxes } = await api.want<{ inboxes: Inbox[] }>('/v1/inboxes')
    assert.deepEqual(
      inboxes.map(({ id }) => id),
      [other.id],
    )
    const { submissions } = await api.want<{ submissions: Submission[] }>('/v1/submissions')
    assert.equal(submissions.length, 1)
    assert.equal(
      (await api.call(`/v1/submissions?inboxId=${theirs.inbox.id}`)).body.error,
      'inbox_not_allowed',
    )
  })
})

test('check 72: a lost 201 is answered again', async () => {
  const { api } = await stage.createCaller()
  const call = { method: 'POST', body: { displayName: 'One' }, idempotencyKey: 'inbox-key-1' }
  const made = await api.call<Inbox>('/v1/inboxes', call)
  const again = await api.call<Inbox>('/v1/inboxes', call)
  assert.deepEqual([again.status, again.body], [made.status, made.body])
  const other = await api.call('/v1/inboxes', { ...call, body: {} })
  assert.deepEqual([other.status, other.body.error], [409, 'idempotency_key_reused'])
})

test('an error of ours is a 500 without details, logged once', async (t) => {
  const broken = await setStage(t)
  const { secret } = await broken.createCaller()
  assert.equal((await ask(broken, 'GET', '/v1/me', { secret })).status, 200)
  await broken.db.query('alter table organization rename to elsewhere')
  const { status, headers, body } = await ask(broken, 'GET', '/v1/me', { secret })
  await broken.db.query('alter table elsewhere rename to organization')
  assert.equal(status, 500)
  assert.deepEqual(Object.keys(body), ['error', 'message'])
  assert.doesNotMatch(JSON.stringify(body), /organization|relation|select/i)
  const lines = broken
    .log()
    .split('\n')
    .filter((line) => line.includes(headers.get('x-request-id')!))
  // The request log line that accompanies each request does not mention the fault.
  assert.equal(lines.filter((line) => !line.includes('request answered')).length, 1)
  assert.ok(!lines.join().includes(secret))
})
