// Runs sequences of operations on an organization and compares it with a simple model after creating, listing and deleting.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { nextKey } from '../../http/sending.ts'
import { type Caller, setStage } from '../../http/stage.ts'
import type { Acceptance, Message } from '../../support/api.ts'

const stage = await setStage({ after })

interface ModelMessage {
  inboxId: string
  threadId: string
  submissionId: string | null
}

/** The expected state. */
class Model {
  readonly inboxes = new Map<string, { address: string }>()
  readonly deletedInboxes = new Set<string>()
  readonly messages = new Map<string, ModelMessage>()
  readonly deletedMessages = new Set<string>()
  /** By id: whether any recipient of the submission still waits. */
  readonly submissions = new Map<string, 'waits' | 'ended'>()
  readonly suppressions = new Set<string>()
  readonly webhooks = new Map<string, string>()
  readonly deletedWebhooks = new Set<string>()
}

interface Asked {
  status: number
  body: { error?: string } & Record<string, unknown>
}

class Real {
  readonly caller: Caller

  constructor(caller: Caller) {
    this.caller = caller
  }

  async ask(method: string, path: string, body?: object): Promise<Asked> {
    const call = { method, ...(body && { body, idempotencyKey: nextKey() }) }
    const answer = await this.caller.api.call<Asked['body']>(path, call)
    assert.ok(answer.status < 500, `${method} ${path} is ${answer.status}`)
    return answer
  }

  async expect(method: string, path: string, status: number, body?: object): Promise<Asked['body']> {
    const answer = await this.ask(method, path, body)
    assert.equal(answer.status, status, `${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  /** Reads all entries of a list, in small pages. */
  async list<Entry>(path: string, name: string): Promise<Entry[]> {
    const entries: Entry[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = `limit=3${cursor && `&cursor=${cursor}`}`
      const page = await this.expect('GET', `${path}?${query}`, 200)
      entries.push(...(page[name] as Entry[]))
      cursor = page['nextCursor'] as string | null
    }
    return entries
  }
}

type Step = (model: Model, real: Real, at: number) => Promise<void>

/** Picks an entry by number, or returns null if there are none. */
function oneOf<Entry>(entries: Iterable<Entry>, at: number): Entry | null {
  const all = [...entries]
  return all[at % all.length] ?? null
}

function accept(model: Model, { message, submission }: Acceptance): void {
  model.messages.set(message.id, {
    inboxId: message.inboxId,
    threadId: message.threadId,
    submissionId: submission.id,
  })
  model.submissions.set(submission.id, 'waits')
}

const mail = (to: string) => `From: a@far.test\nTo: ${to}\nSubject: Hello\n\nThere\n`

const steps: Record<string, Step> = {
  openInbox: async (model, real) => {
    const inbox = await real.expect('POST', '/v1/inboxes', 201, {})
    model.inboxes.set(String(inbox['id']), { address: String(inbox['address']) })
    assert.deepEqual(await real.expect('GET', `/v1/inboxes/${inbox['id']}`, 200), inbox)
  },
  deleteInbox: async (model, real, at) => {
    const id = oneOf(model.inboxes.keys(), at)
    if (id === null) return
    await real.expect('DELETE', `/v1/inboxes/${id}`, 204)
    model.inboxes.delete(id)
    model.deletedInboxes.add(id)
    for (const [messageId, { inboxId, submissionId }] of model.messages) {
      if (inboxId !== id) continue
      model.messages.delete(messageId)
      model.deletedMessages.add(messageId)
      if (submissionId) model.submissions.set(submissionId, 'ended')
    }
  },
  send: async (model, real, at) => {
    const id = oneOf(model.inboxes.keys(), at)
    if (id === null) return
    const to = [{ email: `r${at % 5}@far.test` }]
    const isSuppressed = model.suppressions.has(to[0]!.email)
    const body = { to, subject: 'Hello', text: 'There' }
    const answer = await real.expect('POST', `/v1/inboxes/${id}/messages`, isSuppressed ? 422 : 202, body)
    if (!isSuppressed) accept(model, answer as unknown as Acceptance)
  },
  receive: async (model, real, at) => {
    const chosen = oneOf(model.inboxes, at)
    if (chosen === null) return
    const [inboxId, { address }] = chosen
    await stage.receive(address, mail(address))
    const [newest] = await real.list<Message>(`/v1/inboxes/${inboxId}/messages`, 'messages')
    assert.equal(newest?.direction, 'inbound')
    model.messages.set(newest.id, { inboxId, threadId: newest.threadId, submissionId: null })
  },
  reply: async (model, real, at) => {
    const chosen = oneOf(model.messages, at)
    if (chosen === null) return
    const [targetMessageId, { threadId }] = chosen
    const answer = await real.ask('POST', `/v1/threads/${threadId}/replies`, { targetMessageId, text: 'So' })
    assert.ok([202, 422].includes(answer.status), JSON.stringify(answer.body))
    if (answer.status === 202) accept(model, answer.body as unknown as Acceptance)
  },
  deleteMessage: async (model, real, at) => {
    const chosen = oneOf(model.messages, at)
    if (chosen === null) return
    const [id, { submissionId }] = chosen
    await real.expect('DELETE', `/v1/messages/${id}`, 204)
    model.messages.delete(id)
    model.deletedMessages.add(id)
    if (submissionId) model.submissions.set(submissionId, 'ended')
  },
  cancel: async (model, real, at) => {
    const id = oneOf(model.submissions.keys(), at)
    if (id === null) return
    const submission = await real.expect('POST', `/v1/submissions/${id}/cancel`, 200)
    assert.equal(submission['status'], 'failed')
    model.submissions.set(id, 'ended')
  },
  suppress: async (model, real, at) => {
    const email = `r${at % 5}@far.test`
    await real.expect('POST', '/v1/suppressions', 201, { email })
    model.suppressions.add(email)
  },
  letGo: async (model, real, at) => {
    const email = `r${at % 5}@far.test`
    await real.expect('DELETE', '/v1/suppressions', model.suppressions.has(email) ? 204 : 404, { email })
    model.suppressions.delete(email)
  },
  openWebhook: async (model, real) => {
    const body = { url: 'https://app.example.com/hooks' }
    const { id } = await real.expect('POST', '/v1/webhooks', 201, body)
    model.webhooks.set(String(id), 'active')
  },
  changeWebhook: async (model, real, at) => {
    const id = oneOf(model.webhooks.keys(), at)
    if (id === null) return
    const status = at % 2 ? 'active' : 'disabled'
    await real.expect('PATCH', `/v1/webhooks/${id}`, 200, { status })
    model.webhooks.set(id, status)
  },
  deleteWebhook: async (model, real, at) => {
    const id = oneOf(model.webhooks.keys(), at)
    if (id === null) return
    await real.expect('DELETE', `/v1/webhooks/${id}`, 204)
    model.webhooks.delete(id)
    model.deletedWebhooks.add(id)
  },
  useWhatIsGone: async (model, real, at) => {
    const body = { to: [{ email: 'a@far.test' }], subject: 'Hello', text: 'There' }
    const inboxId = oneOf(model.deletedInboxes, at)
    if (inboxId !== null) {
      await real.expect('POST', `/v1/inboxes/${inboxId}/messages`, 404, body)
      await real.expect('DELETE', `/v1/inboxes/${inboxId}`, 204)
    }
    const messageId = oneOf(model.deletedMessages, at)
    if (messageId !== null) await real.expect('DELETE', `/v1/messages/${messageId}`, 204)
    const webhookId = oneOf(model.deletedWebhooks, at)
    if (webhookId !== null) await real.expect('DELETE', `/v1/webhooks/${webhookId}`, 404)
  },
}

const idsOf = (entries: { id: string }[]) => entries.map(({ id }) => id).sort()

/** Asserts that the service shows exactly what the model contains. */
async function compare(model: Model, real: Real): Promise<void> {
  const inboxes = await real.list<{ id: string }>('/v1/inboxes', 'inboxes')
  assert.deepEqual(idsOf(inboxes), [...model.inboxes.keys()].sort())
  for (const id of model.inboxes.keys()) await compareInbox(model, real, id)
  for (const id of model.deletedInboxes) {
    for (const path of ['', '/messages', '/threads'])
      await real.expect('GET', `/v1/inboxes/${id}${path}`, 404)
    await real.expect('GET', `/v1/inboxes/${id}/export`, 410)
  }
  for (const [id, { threadId }] of model.messages) {
    await real.expect('GET', `/v1/messages/${id}`, 200)
    const messages = await real.list<{ id: string }>(`/v1/threads/${threadId}`, 'messages')
    assert.ok(messages.some((message) => message.id === id))
  }
  for (const id of model.deletedMessages) await real.expect('GET', `/v1/messages/${id}`, 404)
  const submissions = await real.list<{ id: string; status: string }>('/v1/submissions', 'submissions')
  assert.deepEqual(idsOf(submissions), [...model.submissions.keys()].sort())
  for (const { id, status } of submissions)
    assert.equal(status, model.submissions.get(id) === 'waits' ? 'pending' : 'failed')
  const suppressions = await real.list<{ email: string }>('/v1/suppressions', 'suppressions')
  assert.deepEqual(suppressions.map(({ email }) => email).sort(), [...model.suppressions].sort())
  const webhooks = await real.list<{ id: string; status: string }>('/v1/webhooks', 'webhooks')
  assert.deepEqual(
    new Map(webhooks.map(({ id, status }) => [id, status])),
    new Map([...model.webhooks].reverse()),
  )
  for (const id of model.deletedWebhooks) await real.expect('GET', `/v1/webhooks/${id}`, 404)
}

async function compareInbox(model: Model, real: Real, inboxId: string): Promise<void> {
  const known = [...model.messages]
    .flatMap(([id, message]) => (message.inboxId === inboxId ? [id] : []))
    .sort()
  for (const path of ['messages', 'export'])
    assert.deepEqual(
      idsOf(await real.list<{ id: string }>(`/v1/inboxes/${inboxId}/${path}`, 'messages')),
      known,
    )
  const threads = await real.list<{ id: string; messageCount: number }>(
    `/v1/inboxes/${inboxId}/threads`,
    'threads',
  )
  const counted = threads.reduce((sum, { messageCount }) => sum + messageCount, 0)
  assert.equal(counted, known.length)
}

/** Steps that create threads are twice as likely, so that there is something to delete. */
const weighted = Object.keys(steps).flatMap((name) =>
  ['openInbox', 'send', 'receive', 'reply'].includes(name) ? [name, name] : [name],
)

test('check 71: after any sequence of requests the service shows what they did', async () => {
  const sequences = fc.array(fc.tuple(fc.constantFrom(...weighted), fc.nat({ max: 100 })), {
    minLength: 5,
    maxLength: 40,
  })
  const property = fc.asyncProperty(sequences, async (sequence) => {
    const [model, real] = [new Model(), new Real(await stage.createCaller())]
    await real.caller.api.want('/v1/me')
    for (const [name, at] of sequence) await steps[name]!(model, real, at)
    await compare(model, real)
  })
  await fc.assert(property, { numRuns: 25, endOnFailure: true })
  assert.ok(!stage.log().includes('"level":50'))
})
