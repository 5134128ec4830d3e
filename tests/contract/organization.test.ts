// Proofs for an organization's inboxes and their content, domains, webhooks, stream, suppressions and submissions.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, get } from 'node:http'
import { after } from 'node:test'
import type { Api, Inbox, Message } from '../support/api.ts'
import { proveDomain, registerDomain } from '../support/customer-domain.ts'
import { until } from '../support/until.ts'
import type { Answer } from './ask.ts'
import {
  type Caller,
  holdMessages,
  largestDownloadBytes,
  mail,
  makeWorld,
  newKey,
  proveOwn,
  receive,
  receiveFiles,
} from './world.ts'

const world = await makeWorld({ after })
const { prove, receiver, dns, sink } = world

const open = 'POST /v1/inboxes'
const openWith = (caller: Caller, body: object, idempotencyKey?: string) =>
  caller.ask('POST', '/v1/inboxes', { body, ...(idempotencyKey && { idempotencyKey }) })

prove(open, 201, null, 'managed; on a domain of one’s own', async () => {
  const caller = await world.createCaller()
  const { id: domainId } = await proveOwn(world, caller, ['ownership'])
  const answers = [
    await openWith(caller, {}),
    await openWith(caller, { localPart: 'Ada.L', displayName: 'Ada' }),
    await openWith(caller, { domainId, localPart: 'support' }),
  ]
  const shown = answers.map(({ body }) => [body!['domainKind'], body!['domainId'], body!['status']])
  assert.deepEqual(shown, [
    ['managed', null, 'active'],
    ['managed', null, 'active'],
    ['customer', domainId, 'active'],
  ])
  assert.equal(answers[1]!.body!['localPart'], 'ada.l')
  return answers
})

prove(open, 201, null, 'again with the same key', async () => {
  const caller = await world.createCaller({ limits: { managedStarter: 1 } })
  const key = newKey()
  const answers = [await openWith(caller, {}, key), await openWith(caller, {}, key)]
  assert.deepEqual(answers[0]!.body, answers[1]!.body)
  return answers
})

prove(
  open,
  400,
  'reserved_local_part',
  'postmaster, bounce-x; in capitals, with dots, on one’s own domain',
  async () => {
    const caller = await world.createCaller()
    const { id: domainId } = await proveOwn(world, caller, ['ownership'])
    const managed = ['postmaster', 'Post.Master', 'noreply', 'bounce-x'].map((localPart) => ({ localPart }))
    const bodies = [...managed, { domainId, localPart: 'abuse' }]
    return await Promise.all(bodies.map((body) => openWith(caller, body)))
  },
)

prove(open, 403, 'managed_allowance_exhausted', 'after the last of a lifetime, deleted or not', async () => {
  const caller = await world.createCaller({ limits: { managedStarter: 1 } })
  const { id } = await caller.api.createInbox()
  const first = await openWith(caller, {})
  await caller.api.want(`/v1/inboxes/${id}`, { method: 'DELETE', status: 204 })
  return [first, await openWith(caller, {})]
})

prove(open, 403, 'limit_reached', 'inboxes of the organization; of the domain', async () => {
  const few = await world.createCaller({ limits: { inboxes: 1 } })
  await few.api.createInbox()
  const caller = await world.createCaller({ limits: { inboxesPerDomain: 1 } })
  const { id: domainId } = await proveOwn(world, caller, ['ownership'])
  assert.equal((await openWith(caller, { domainId })).status, 201)
  return [await openWith(few, {}), await openWith(caller, { domainId })]
})

prove(open, 409, 'address_taken', 'in use, one’s own too; once another’s', async () => {
  const [caller, other] = [await world.createCaller(), await world.createCaller()]
  const { id } = await other.api.createInbox('taken')
  const answers = [
    await openWith(caller, { localPart: 'taken' }),
    await openWith(other, { localPart: 'taken' }),
  ]
  await other.api.want(`/v1/inboxes/${id}`, { method: 'DELETE', status: 204 })
  return [...answers, await openWith(caller, { localPart: 'taken' })]
})

prove(open, 409, 'domain_not_verified', 'the domain is only claimed', async () => {
  const caller = await world.createCaller()
  const { id: domainId } = await registerDomain(caller.api, 'claimed.example')
  return await openWith(caller, { domainId })
})

prove(open, 409, 'idempotency_key_reused', 'same key, other request; the inbox was deleted', async () => {
  const caller = await world.createCaller()
  const key = newKey()
  const { body } = await openWith(caller, {}, key)
  const other = await openWith(caller, { displayName: 'Other' }, key)
  await caller.api.want(`/v1/inboxes/${body!['id']}`, { method: 'DELETE', status: 204 })
  return [other, await openWith(caller, {}, key)]
})

/** Sends the request while a message of the inbox is in an SMTP transaction. */
async function askOnWire(
  ask: (caller: Caller, ids: { inbox: string; message: string; submission: string }) => Promise<Answer>,
): Promise<Answer> {
  const caller = await world.createCaller()
  const inbox = await caller.api.createInbox()
  const { reached, release } = holdMessages(sink)
  try {
    const sent = await send(caller.api, inbox, mail)
    await reached
    return await ask(caller, { inbox: inbox.id, message: sent.message.id, submission: sent.submission.id })
  } finally {
    release()
  }
}

function send(api: Api, { id }: Inbox, body: object) {
  return api.want<{ message: Message; submission: { id: string } }>(`/v1/inboxes/${id}/messages`, {
    method: 'POST',
    idempotencyKey: newKey(),
    body,
    status: 202,
  })
}

const onWire = 'a message is on the wire'

prove('DELETE /v1/inboxes/{inboxId}', 409, 'delivery_in_progress', onWire, () =>
  askOnWire((caller, { inbox }) => caller.ask('DELETE', `/v1/inboxes/${inbox}`)),
)
prove('DELETE /v1/messages/{messageId}', 409, 'delivery_in_progress', onWire, () =>
  askOnWire((caller, { message }) => caller.ask('DELETE', `/v1/messages/${message}`)),
)
prove('POST /v1/submissions/{submissionId}/cancel', 409, 'delivery_in_progress', onWire, () =>
  askOnWire((caller, { submission }) => caller.ask('POST', `/v1/submissions/${submission}/cancel`)),
)

for (const [operation, path] of [
  ['DELETE /v1/inboxes/{inboxId}', '/v1/inboxes/inb_000000000000000000000000'],
  ['DELETE /v1/messages/{messageId}', '/v1/messages/msg_000000000000000000000000'],
  ['DELETE /v1/domains/{domainId}', '/v1/domains/00000000-0000-7000-8000-000000000000'],
] as const)
  prove(operation, 204, null, 'there is none', async () => (await world.createCaller()).ask('DELETE', path))

const exporting = 'GET /v1/inboxes/{inboxId}/export'

prove(exporting, 200, null, 'page by page, oldest first', async () => {
  const caller = await world.createCaller()
  const inbox = await caller.api.createInbox()
  for (const subject of ['1', '2']) await send(caller.api, inbox, { ...mail, subject })
  await receive(world, caller, inbox, 'From: a@far.test\nSubject: 3\n\nThere.\n')
  const answers: Answer[] = []
  for (let query: string | null = '?limit=1'; query !== null; ) {
    const answer = await caller.ask('GET', `/v1/inboxes/${inbox.id}/export${query}`)
    answers.push(answer)
    const cursor = answer.body!['nextCursor'] as string | null
    query = cursor && `?limit=1&cursor=${cursor}`
  }
  const subjects = answers.flatMap(({ body }) =>
    (body!['messages'] as Message[]).map(({ subject }) => subject),
  )
  assert.deepEqual(subjects, ['1', '2', '3'])
  return answers
})

prove(exporting, 410, 'inbox_deleted', 'it was deleted within 30 days', async () => {
  const caller = await world.createCaller()
  const { id } = await caller.api.createInbox()
  await caller.api.want(`/v1/inboxes/${id}`, { method: 'DELETE', status: 204 })
  return await caller.ask('GET', `/v1/inboxes/${id}/export`)
})

const mebibyte = 1 << 20
let largeThread: Promise<{ caller: Caller; inbox: Inbox; thread: string }> | undefined

/** Returns a thread of two messages with 1.5 MiB of text each. */
function large() {
  return (largeThread ??= (async () => {
    const caller = await world.createCaller({ limits: { messageContentBytes: 2 * mebibyte } })
    const inbox = await caller.api.createInbox()
    const text = 'x'.repeat(1.5 * mebibyte)
    const { message } = await send(caller.api, inbox, { ...mail, text })
    await caller.api.want(`/v1/threads/${message.threadId}/replies`, {
      method: 'POST',
      idempotencyKey: newKey(),
      status: 202,
      body: { targetMessageId: message.id, text },
    })
    return { caller, inbox, thread: message.threadId }
  })())
}

const pages: [operation: string, pathOf: (ids: { inbox: Inbox; thread: string }) => string][] = [
  [exporting, ({ inbox }) => `/v1/inboxes/${inbox.id}/export`],
  ['GET /v1/inboxes/{inboxId}/messages', ({ inbox }) => `/v1/inboxes/${inbox.id}/messages`],
  ['GET /v1/threads/{threadId}', ({ thread }) => `/v1/threads/${thread}`],
]
for (const [operation, pathOf] of pages)
  prove(operation, 200, null, 'over 1 MiB: a page ends early and its cursor leads to the rest', async () => {
    const { caller, ...ids } = await large()
    const first = await caller.ask('GET', `${pathOf(ids)}?limit=2`)
    const rest = await caller.ask('GET', `${pathOf(ids)}?limit=2&cursor=${first.body!['nextCursor']}`)
    for (const { body } of [first, rest]) assert.equal((body!['messages'] as Message[]).length, 1)
    assert.equal(rest.body!['nextCursor'], null)
    return [first, rest]
  })

const download = 'GET /v1/messages/{messageId}/attachments/{attachmentId}'

/** Downloads an attachment with this content, once its scan is as far as it gets. */
async function downloadOf(content: string): Promise<Answer> {
  const caller = await world.createCaller()
  const { paths } = await receiveFiles(world, caller, await caller.api.createInbox(), [content])
  return await until('the verdict', async () => {
    const answer = await caller.ask('GET', paths[0]!)
    return answer.status === 423 && !content.startsWith('WAIT') ? null : answer
  })
}

prove(download, 200, null, 'found clean; with the headers of the specification', async () => {
  const answer = await downloadOf('harmless')
  assert.equal(answer.bytes.toString(), 'harmless')
  const exact = {
    'cache-control': 'private, no-store',
    'content-disposition': `attachment; filename="Gr_n.txt"; filename*=UTF-8''Gr%C3%BCn.txt`,
    'content-length': '8',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
  }
  for (const [name, value] of Object.entries(exact)) assert.equal(answer.headers.get(name), value, name)
  return answer
})
prove(download, 409, 'attachment_not_clean', 'infected; not to be scanned as a whole', async () => [
  await downloadOf('VIRUS'),
  await downloadOf('LIMITS'),
])
prove(download, 413, 'attachment_too_large', 'one byte over what the deployment gives out', () =>
  downloadOf('x'.repeat(largestDownloadBytes + 1)),
)
prove(download, 423, 'attachment_not_scanned', 'no verdict yet', () => downloadOf('WAIT'))

prove('GET /v1/messages/{messageId}/source', 200, null, 'as received, below its trace', async () => {
  const caller = await world.createCaller()
  const { id } = await receive(world, caller, await caller.api.createInbox())
  const answer = await caller.ask('GET', `/v1/messages/${id}/source`)
  assert.match(answer.bytes.toString(), /^Return-Path: <someone@far\.test>\r\n[\s\S]*\r\n\r\nThere\.\r\n$/)
  assert.equal(answer.headers.get('content-security-policy'), "default-src 'none'; sandbox")
  assert.match(
    answer.headers.get('content-disposition') ?? '',
    /^attachment; filename="msg_[a-f0-9]{24}\.eml"/,
  )
  return answer
})
prove('GET /v1/messages/{messageId}/source', 404, 'not_found', 'it was sent, not received', async () => {
  const caller = await world.createCaller()
  const { message } = await send(caller.api, await caller.api.createInbox(), mail)
  return await caller.ask('GET', `/v1/messages/${message.id}/source`)
})

const shownHeader = 'GET /v1/messages/{messageId}/headers'

prove(
  shownHeader,
  200,
  null,
  'what this service wrote, then what came, as it stands and as it reads',
  async () => {
    const caller = await world.createCaller()
    const raw = 'From: a@far.test\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n von Ada\n\nThere.\n'
    const { id } = await receive(world, caller, await caller.api.createInbox(), raw)
    const answer = await caller.ask('GET', `/v1/messages/${id}/headers`)
    const fields = answer.body!['headers'] as { name: string; value: string; raw: string }[]
    assert.deepEqual(fields[0], {
      name: 'Return-Path',
      value: '<someone@far.test>',
      raw: 'Return-Path: <someone@far.test>',
    })
    assert.deepEqual(fields.at(-1), {
      name: 'Subject',
      value: 'Grüße von Ada',
      raw: 'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n von Ada',
    })
    return answer
  },
)
prove(shownHeader, 404, 'not_found', 'it was sent, not received', async () => {
  const caller = await world.createCaller()
  const { message } = await send(caller.api, await caller.api.createInbox(), mail)
  return await caller.ask('GET', `/v1/messages/${message.id}/headers`)
})

const listed = 'GET /v1/inboxes/{inboxId}/messages'

prove(listed, 200, null, 'what came after a message, oldest first; waited for', async () => {
  const caller = await world.createCaller()
  const inbox = await caller.api.createInbox()
  const after = (id: string, query = '') =>
    caller.ask('GET', `/v1/inboxes/${inbox.id}/messages?after=${id}${query}`)
  const waiting = after('0', '&wait=60&direction=inbound')
  const first = await receive(world, caller, inbox)
  const { message } = await send(caller.api, inbox, mail)
  const answers = [await waiting, await after('0'), await after(first.id), await after(message.id, '&wait=1')]
  const ids = answers.map(({ body }) => (body!['messages'] as Message[]).map(({ id }) => id))
  assert.deepEqual(ids, [[first.id], [first.id, message.id], [message.id], []])
  return answers
})
prove(
  listed,
  400,
  'invalid_request',
  'after what is not there, with other filters, a wait by itself',
  async () => {
    const caller = await world.createCaller()
    const [inbox, other] = [await caller.api.createInbox(), await caller.api.createInbox()]
    const { message } = await send(caller.api, other, mail)
    const queries = [
      ...['wait=0', 'wait=5', 'after=0&wait=61', 'after=0&wait=-1', 'after=0&wait=', 'after=', 'after=1'],
      ...['after=0&q=a', 'after=0&from=a@far.test', 'after=0&since=2026-11-21T09:00:00Z'],
      ...['after=0&until=2026-11-21T09:00:00Z', 'after=msg_000000000000000000000000', `after=${message.id}`],
    ]
    return await Promise.all(
      queries.map((query) => caller.ask('GET', `/v1/inboxes/${inbox.id}/messages?${query}`)),
    )
  },
)
prove(listed, 400, 'invalid_cursor', 'a cursor of the list that is newest first', async () => {
  const caller = await world.createCaller()
  const inbox = await caller.api.createInbox()
  for (const subject of ['1', '2']) await send(caller.api, inbox, { ...mail, subject })
  const path = `/v1/inboxes/${inbox.id}/messages?limit=1`
  const [list, after] = [await caller.ask('GET', path), await caller.ask('GET', `${path}&after=0`)]
  const next = ({ body }: Answer) => `&cursor=${body!['nextCursor']}`
  const [page] = [await caller.ask('GET', `${path}&after=0${next(after)}`)]
  assert.deepEqual([page.status, (page.body!['messages'] as Message[])[0]!.subject], [200, '2'])
  return [
    await caller.ask('GET', `${path}&after=0${next(list)}`),
    await caller.ask('GET', path + next(after)),
  ]
})

const register = 'POST /v1/domains'

prove(register, 201, null, 'new; one’s own again, however it is written', async () => {
  const caller = await world.createCaller({ limits: { domains: 1 } })
  const names = ['bücher.example', ' XN--bcher-kva.Example. ']
  const answers = []
  for (const domain of names) answers.push(await caller.ask('POST', '/v1/domains', { body: { domain } }))
  assert.deepEqual(
    answers.map(({ body }) => body!['domain']),
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  )
  assert.equal(answers[0]!.body!['id'], answers[1]!.body!['id'])
  return answers
})
prove(register, 403, 'limit_reached', 'the organization has as many as it may', async () => {
  const caller = await world.createCaller({ limits: { domains: 1 } })
  await registerDomain(caller.api, 'first.example')
  return await caller.ask('POST', '/v1/domains', { body: { domain: 'second.example' } })
})
prove(register, 409, 'domain_taken', 'proved by another; managed, or under it', async () => {
  const [caller, other] = [await world.createCaller(), await world.createCaller()]
  await proveDomain(other.api, dns, 'proved.example', ['ownership'])
  const names = ['proved.example', 'inbox.test', 'sub.inbox.test']
  return await Promise.all(names.map((domain) => caller.ask('POST', '/v1/domains', { body: { domain } })))
})

prove('DELETE /v1/domains/{domainId}', 409, 'domain_in_use', 'an inbox is on it', async () => {
  const caller = await world.createCaller()
  const { id: domainId } = await proveOwn(world, caller, ['ownership'])
  await caller.api.want('/v1/inboxes', { method: 'POST', body: { domainId }, status: 201 })
  return await caller.ask('DELETE', `/v1/domains/${domainId}`)
})

prove('POST /v1/domains/{domainId}/verify', 200, null, 'receiving alone is proved', async () => {
  const caller = await world.createCaller()
  const { id } = await proveDomain(caller.api, dns, 'receives.example', ['inbound'])
  const answer = await caller.ask('POST', `/v1/domains/${id}/verify`)
  const { outbound, inbound } = answer.body!['capabilities'] as Record<string, { status: string }>
  assert.deepEqual([outbound!.status, inbound!.status], ['pending', 'verified'])
  return answer
})

prove('POST /v1/webhooks', 403, 'limit_reached', 'the organization has as many as it may', async () => {
  const caller = await world.createCaller({ limits: { webhookEndpoints: 1 } })
  const make = () => caller.ask('POST', '/v1/webhooks', { body: { url: receiver.url() } })
  assert.equal((await make()).status, 201)
  return await make()
})

/** Sends the request while a call of the webhook waits for its answer. */
async function askWhileCalled(ask: (caller: Caller, path: string) => Promise<Answer>): Promise<Answer> {
  const caller = await world.createCaller()
  const place = `/held-${newKey()}`
  const held: (() => void)[] = []
  receiver.answer(place, (response) => void held.push(() => response.writeHead(204).end()))
  const { id } = await caller.api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    body: { url: receiver.url(place) },
    status: 201,
  })
  const path = `/v1/webhooks/${id}`
  await caller.api.want(`${path}/test`, { method: 'POST', status: 202 })
  try {
    await until('the call', () => receiver.callsOf(place).length > 0)
    return await ask(caller, path)
  } finally {
    for (const release of held) release()
  }
}

const deleting = 'DELETE /v1/webhooks/{webhookId}'

prove(deleting, 409, 'delivery_in_progress', 'a call of it is on the wire', () =>
  askWhileCalled((caller, path) => caller.ask('DELETE', path)),
)
prove(deleting, 204, null, 'disabled while a call of it is on the wire', () =>
  askWhileCalled(async (caller, path) => {
    await caller.api.want(path, { method: 'PATCH', body: { status: 'disabled' } })
    return await caller.ask('DELETE', path)
  }),
)
prove(deleting, 204, null, 'called before', async () => {
  const caller = await world.createCaller()
  const { id } = await caller.api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    body: { url: receiver.url('/called') },
    status: 201,
  })
  await caller.api.want(`/v1/webhooks/${id}/test`, { method: 'POST', status: 202 })
  const list = `/v1/webhooks/${id}/deliveries`
  await until('the call to be recorded', async () => {
    const { deliveries } = await caller.api.want<{ deliveries: { status: string }[] }>(list)
    return deliveries[0]?.status === 'succeeded'
  })
  return await caller.ask('DELETE', `/v1/webhooks/${id}`)
})

/** Opens streams on separate connections until one is refused. Returns a function that ends them. */
async function openAll(secret: string): Promise<() => void> {
  const requests: ClientRequest[] = []
  const open = async () => {
    const asked = get(`${world.base}/v1/events`, { agent: false, headers: { 'x-api-key': secret } })
    requests.push(asked)
    const [response] = await once(asked, 'response')
    // Ending the streams causes these errors.
    asked.on('error', () => {})
    response.on('error', () => {})
    return response.statusCode as number
  }
  for (let isRefused = false; !isRefused; ) {
    const statuses = await Promise.all(Array.from({ length: 50 }, open))
    isRefused = statuses.includes(403)
  }
  return () => {
    for (const asked of requests) asked.destroy()
  }
}

prove('GET /v1/events', 403, 'limit_reached', 'as many streams as an organization may have', async () => {
  const caller = await world.createCaller()
  const end = await openAll(caller.secret)
  try {
    return await caller.ask('GET', '/v1/events')
  } finally {
    end()
  }
})
prove('GET /v1/events', 200, null, 'from an event that nobody knows', async () => {
  const caller = await world.createCaller()
  const answer = await caller.ask('GET', '/v1/events', { headers: { 'last-event-id': 'unknown' } })
  assert.match(answer.bytes.toString(), /^event: stream\.reset$/m)
  return answer
})

const suppress = 'POST /v1/suppressions'

prove(suppress, 201, null, 'new; there already', async () => {
  const caller = await world.createCaller()
  const add = (email: string) => caller.ask('POST', '/v1/suppressions', { body: { email } })
  const answers = [await add('Nobody@far.test'), await add('nobody@FAR.test')]
  assert.deepEqual(answers[0]!.body, answers[1]!.body)
  return answers
})

prove('POST /v1/submissions/{submissionId}/cancel', 200, null, 'what waits; what is over', async () => {
  const caller = await world.createCaller()
  const inbox = await caller.api.createInbox()
  world.sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 later' : null)
  try {
    const { submission } = await caller.api.want<{ submission: { id: string } }>(
      `/v1/inboxes/${inbox.id}/messages`,
      { method: 'POST', idempotencyKey: newKey(), body: mail, status: 202 },
    )
    const path = `/v1/submissions/${submission.id}`
    const first = await until('it to be off the wire', async () => {
      const answer = await caller.ask('POST', `${path}/cancel`)
      return answer.status === 409 ? null : answer
    })
    assert.deepEqual([first.body!['status'], first.body!['failureCode']], ['failed', 'cancelled'])
    return [first, await caller.ask('POST', `${path}/cancel`)]
  } finally {
    world.sink.rule = () => null
  }
})

prove('POST /v1/validate', 200, null, 'deliverable or not', async () => {
  const caller = await world.createCaller()
  dns.set('far.test', { MX: [[10, 'mx.far.test']] })
  dns.set('mx.far.test', { A: ['192.0.2.1'] })
  const judge = (email: string) => caller.ask('POST', '/v1/validate', { body: { email } })
  const answers = [await judge('ada@far.test'), await judge('ada@nowhere.test')]
  assert.deepEqual(
    answers.map(({ body }) => body!['verdict']),
    ['deliverable', 'undeliverable'],
  )
  return answers
})
