// What the operations show, to whom, and page by page.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Acceptance, Api, Inbox, Message, Submission } from '../support/api.ts'
import { ask, type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })

interface Page {
  nextCursor: string | null
  [list: string]: unknown
}

let keys = 0
async function send(api: Api, inbox: Inbox, change: object = {}): Promise<Acceptance> {
  const body = {
    to: [{ email: 'someone@far.test', name: 'Someone' }],
    subject: 'Hello',
    text: 'There',
    ...change,
  }
  return api.want(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    idempotencyKey: `resource-${++keys}`,
    body,
    status: 202,
  })
}

function reply(api: Api, threadId: string, targetMessageId: string) {
  const call = {
    method: 'POST',
    idempotencyKey: `resource-${++keys}`,
    body: { targetMessageId, text: 'Answer' },
  }
  return api.call<Acceptance & { error: string }>(`/v1/threads/${threadId}/replies`, call)
}

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

test('GET /v1/me is the profile and nothing of the secret', async () => {
  const { api, organizationId, keyId, secret } = await stage.createCaller({ limits: { managedStarter: 7 } })
  await api.createInbox()
  const me = await api.want<Record<string, Record<string, unknown>>>('/v1/me')
  assert.deepEqual(Object.keys(me), ['organization', 'apiKey', 'managedStarter', 'platformLimits'])
  assert.equal(me['organization']?.['id'], organizationId)
  assert.deepEqual(me['apiKey'], {
    ...{
      id: keyId,
      kind: 'agent',
      scopes: ['*'],
      inboxIds: null,
      allowedIps: null,
      sendMode: 'new_and_reply',
    },
    ...{ allowedRecipientDomains: null, expiresAt: null, requestsPerMinute: 1_000_000 },
  })
  assert.deepEqual(me['managedStarter'], { limit: 7, used: 1, remaining: 6 })
  assert.doesNotMatch(JSON.stringify(me), new RegExp(secret.slice(3, 12)))
})

test('a conversation: sent, received, threaded, answered, deleted', async (t) => {
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

  await t.test('a sent message', async () => {
    assert.deepEqual(await api.want(`/v1/messages/${sent.message.id}`), sent.message)
    assert.equal(sent.replayed, false)
    assert.equal('attachments' in sent.message || 'bcc' in sent.message || 'html' in sent.message, false)
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
  await t.test('its submission and events', async () => {
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
  await t.test('a received message', () => {
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
      authentication: { spf: 'not_evaluated', dkim: 'not_evaluated', dmarc: 'not_evaluated' },
      attachments: 'unscanned',
    })
    const [attachment] = received.attachments ?? []
    assert.equal(attachment?.id, `att_${received.id.slice(4)}_1`)
    assert.deepEqual([attachment?.filename, attachment?.contentType], ['a.csv', 'text/csv'])
  })
  await t.test('its source, which no browser runs', async () => {
    const { secret } = await stage.createCaller()
    assert.equal((await ask(stage, 'GET', `/v1/messages/${received.id}/source`, { secret })).status, 404)
    const bytes = await api.bytes(`/v1/messages/${received.id}/source`)
    assert.match(bytes.toString(), /^Return-Path: <someone@far\.test>\r\n/)
    assert.ok(bytes.toString().endsWith('\r\n1,2\r\n--b--\r\n'))
    assert.equal((await api.call(`/v1/messages/${sent.message.id}/source`)).status, 404)
  })
  await t.test('an answer to it', async () => {
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
  await t.test('check 77: deleted, it is gone, twice', async () => {
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

test('the headers of a source', async () => {
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

/** Every operation that names a resource, by whether its deletion of nothing is 204. */
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

test("check 68: another organization's ids are ids that do not exist", async (t) => {
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
    await t.test(`${method} ${path.replace(/[0-9a-f-]{20,}/g, '…')}`, async () => {
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
  await t.test('nothing of theirs was touched', async () => {
    assert.equal((await theirs.caller.api.call(`/v1/messages/${theirs.accepted.message.id}`)).status, 200)
    assert.equal((await theirs.caller.api.exported(theirs.inbox.id)).length, 1)
  })
  await t.test('our thread with their message as target', async () => {
    const { status, body } = await reply(
      ours.caller.api,
      ours.accepted.message.threadId,
      theirs.accepted.message.id,
    )
    assert.deepEqual([status, body.error], [404, 'not_found'])
  })
  await t.test('their inbox as a filter shows nothing', async () => {
    const { submissions } = await ours.caller.api.want<{ submissions: [] }>(
      `/v1/submissions?inboxId=${theirs.inbox.id}`,
    )
    assert.deepEqual(submissions, [])
  })
})

test('check 68: a key restricted to inboxes', async (t) => {
  const theirs = await own()
  const other = await theirs.caller.api.createInbox()
  const { api } = await theirs.caller.createKey({ inboxIds: [other.id as never] })
  await send(api, other)
  for (const [method, path, body] of operationsOn(theirs))
    await t.test(`${method} ${path.replace(/[0-9a-f-]{20,}/g, '…')} is 403`, async () => {
      const answer = await api.call(path, {
        method,
        ...(body && { body, idempotencyKey: `restricted-${++keys}` }),
      })
      // What is sent has no source for anyone.
      assert.deepEqual([answer.status, answer.body.error], [403, 'inbox_not_allowed'])
    })
  await t.test('opening an inbox is 403, and lists show what is its own', async () => {
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

test('check 76: pages', async (t) => {
  const caller = await stage.createCaller()
  const { api } = caller
  const inbox = await api.createInbox()
  const accepted: Acceptance[] = []
  for (let count = 0; count < 7; count++) accepted.push(await send(api, inbox, { subject: `S${count}` }))
  for (let count = 0; count < 6; count++) await api.createInbox()
  const first = accepted[0]!.message
  for (let count = 0; count < 4; count++) await reply(api, first.threadId, first.id)

  const newestFirst = accepted.map(({ message }) => message.id).reverse()
  const lists: [path: string, name: string, count: number][] = [
    ['/v1/inboxes', 'inboxes', 7],
    [`/v1/inboxes/${inbox.id}/messages`, 'messages', 11],
    [`/v1/inboxes/${inbox.id}/threads`, 'threads', 7],
    [`/v1/inboxes/${inbox.id}/export`, 'messages', 11],
    [`/v1/threads/${first.threadId}`, 'messages', 5],
    ['/v1/submissions', 'submissions', 11],
  ]
  const cursors = new Map<string, string>()
  for (const [path, name, count] of lists)
    await t.test(`${path.replace(/[0-9a-f-]{20,}/g, '…')} in pages of three`, async () => {
      const ids: string[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Page = await api.want<Page>(`${path}?limit=3${cursor && `&cursor=${cursor}`}`)
        const entries = page[name] as { id: string }[]
        assert.ok(entries.length > 0 && entries.length <= 3)
        ids.push(...entries.map(({ id }) => id))
        cursor = page.nextCursor
        if (cursor) cursors.set(path, cursor)
      }
      assert.equal(new Set(ids).size, ids.length)
      assert.equal(ids.length, count)
      const whole = await api.want<Page>(path)
      assert.deepEqual(
        (whole[name] as { id: string }[]).map(({ id }) => id),
        ids,
      )
      assert.equal(whole.nextCursor, null)
    })
  await t.test('messages are newest first, and their filters filter', async () => {
    const shown = async (query: string) => {
      const { messages } = await api.want<{ messages: Message[] }>(
        `/v1/inboxes/${inbox.id}/messages?${query}`,
      )
      return messages.map(({ id }) => id)
    }
    const all = await shown('limit=100')
    assert.deepEqual(all.slice(4), newestFirst)
    assert.deepEqual(await shown('direction=inbound'), [])
    assert.deepEqual(await shown('direction=outbound&limit=100'), all)
    assert.deepEqual(await shown(`from=${encodeURIComponent(inbox.address.toUpperCase())}&limit=100`), all)
    assert.deepEqual(await shown('from=someone@far.test'), [])
    const at = (accepted[3]!.message as unknown as { createdAt: string }).createdAt
    const [since, until] = [await shown(`since=${at}`), await shown(`until=${at}`)]
    assert.ok(since.includes(accepted[3]!.message.id) && !until.includes(accepted[3]!.message.id))
    assert.equal(since.length + until.length, all.length)
  })
  await t.test('a cursor of another list or organization is 400', async () => {
    const stranger = await stage.createCaller()
    for (const [path] of lists)
      for (const [origin, cursor] of cursors) {
        if (origin === path) continue
        const { status, body } = await api.call(`${path}?cursor=${cursor}`)
        assert.deepEqual([status, body.error], [400, 'invalid_cursor'])
      }
    const { body } = await stranger.api.call(`/v1/inboxes?cursor=${cursors.get('/v1/inboxes')}`)
    assert.equal(body.error, 'invalid_cursor')
  })
  await t.test('rows that come and go move nothing that is untouched', async () => {
    const page = await api.want<Page>('/v1/inboxes?limit=3')
    const [newest] = page['inboxes'] as Inbox[]
    await api.want(`/v1/inboxes/${newest!.id}`, { method: 'DELETE', status: 204 })
    await api.createInbox()
    const rest = await api.want<Page>(`/v1/inboxes?limit=100&cursor=${page.nextCursor}`)
    assert.equal((rest['inboxes'] as Inbox[]).length, 4)
  })
})

test('check 73: queries', async (t) => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const queries: [path: string, query: string, status: number][] = [
    ['/v1/inboxes', 'limit=1', 200],
    ['/v1/inboxes', 'limit=100', 200],
    ...['0', '101', '05', '1e1', '+5', '-1', ' 5', '5.0', '0x5', '', 'x', '99999999999999999999'].map(
      (limit): [string, string, number] => ['/v1/inboxes', `limit=${encodeURIComponent(limit)}`, 400],
    ),
    ['/v1/inboxes', 'limit=5&limit=6', 400],
    ['/v1/inboxes', 'Limit=5', 400],
    ['/v1/inboxes', 'limits=5', 400],
    ['/v1/inboxes', '__proto__=5', 400],
    ['/v1/inboxes', 'q=a%25_b', 200],
    ['/v1/inboxes', 'q=%00', 400],
    ['/v1/inboxes', 'q=', 400],
    ['/v1/inboxes', 'domainId=urn:uuid:0199a1b2-3c4d-7e5f-8a6b-1c2d3e4f5a6b', 400],
    ['/v1/inboxes', 'domainId=0199A1B2-3c4d-7e5f-8a6b-1c2d3e4f5a6b', 200],
    ['/v1/inboxes', 'cursor=', 400],
    ['/v1/submissions', 'status=delivered', 200],
    ['/v1/submissions', 'status=sent', 400],
    ['/v1/submissions', 'recipient=a@far.test', 200],
    ['/v1/submissions', 'recipient=a', 400],
    ['/v1/submissions', 'since=2026-11-21T00:00:00Z&until=2026-11-22T00:00:00%2B02:00', 200],
    ['/v1/submissions', 'since=2026-11-21', 400],
    ['/v1/submissions', 'since=2026-02-30T00:00:00Z', 400],
    ['/v1/submissions', 'since=2016-12-31T23:59:60Z', 400],
    ['/v1/submissions', 'since=2026-11-21%2000:00:00Z', 400],
    ['/v1/submissions', 'since=2026-11-21T00:00:00.123456789Z', 200],
    ['/v1/submissions', 'since=2026-11-21T00:00:00%2B24:00', 400],
    ['/v1/submissions', 'since=0000-01-01T00:00:00%2B23:00&until=9999-12-31T23:59:59-23:00', 200],
    [
      `/v1/inboxes/${inbox.id}/messages`,
      'since=0000-01-01T00:00:00%2B23:00&until=9999-12-31T23:59:59-23:00',
      200,
    ],
    ['/v1/submissions', 'q=x', 400],
  ]
  for (const [path, query, status] of queries)
    await t.test(`${path}?${query} is ${status}`, async () => {
      const answer = await api.call(`${path}?${query}`)
      assert.equal(answer.status, status, JSON.stringify(answer.body))
    })
})

test('check 72: a lost 201 is given again', async () => {
  const { api } = await stage.createCaller()
  const call = { method: 'POST', body: { displayName: 'One' }, idempotencyKey: 'inbox-key-1' }
  const made = await api.call<Inbox>('/v1/inboxes', call)
  const again = await api.call<Inbox>('/v1/inboxes', call)
  assert.deepEqual([again.status, again.body], [made.status, made.body])
  const other = await api.call('/v1/inboxes', { ...call, body: {} })
  assert.deepEqual([other.status, other.body.error], [409, 'idempotency_key_reused'])
})

test('a fault of ours is a 500 without a word about it, logged once', async (t) => {
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
  assert.equal(lines.length, 1)
  assert.ok(!lines[0]!.includes(secret))
})
