// Tests webhook endpoints over the API: create, show, change, delete, limits and permissions.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { type Caller, setStage } from './stage.ts'

interface Hook {
  id: string
  url: string
  eventTypes: string[] | null
  description: string | null
  status: string
  secret?: string
  createdAt: string
  updatedAt: string
}

const stage = await setStage({ after })
const url = 'https://app.example.com/hooks'
const unknown = `whk_${'0'.repeat(24)}`

const make = ({ api }: Caller, body: object = { url }) =>
  api.want<Hook>('/v1/webhooks', { method: 'POST', status: 201, body })
const list = ({ api }: Caller, query = '') =>
  api.want<{ webhooks: Hook[]; nextCursor: string | null }>(`/v1/webhooks${query}`)

test('webhooks: the secret is shown when it is made, and never again', async () => {
  const caller = await stage.createCaller()
  const { secret, ...made } = await make(caller, {
    url,
    eventTypes: ['message.received'],
    description: 'Ours',
  })
  assert.match(secret!, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.deepEqual(Object.keys(made).sort(), [
    ...['createdAt', 'description', 'eventTypes', 'id', 'status', 'updatedAt', 'url'],
  ])
  assert.deepEqual([made.url, made.eventTypes, made.description], [url, ['message.received'], 'Ours'])
  assert.match(made.id, /^whk_[a-f0-9]{24}$/)
  assert.equal(made.status, 'active')
  assert.deepEqual(await caller.api.want(`/v1/webhooks/${made.id}`), made)
  assert.deepEqual(await list(caller), { webhooks: [made], nextCursor: null })
  assert.ok(!stage.log().includes(secret!))
})

test('webhooks: omitted types are null, which means all', async () => {
  const caller = await stage.createCaller()
  const made = await make(caller)
  assert.deepEqual([made.eventTypes, made.description], [null, null])
})

test('webhooks: an impossible endpoint is 400', async () => {
  const { api } = await stage.createCaller()
  const bodies = [
    ...[
      {},
      { url: 'http://app.example.com/' },
      { url: 'https://127.0.0.1/' },
      { url: 'https://localhost/' },
      { url: 7 },
    ],
    ...[{ url: 'https://a:b@example.com/' }, { url, eventTypes: [] }, { url, eventTypes: ['message.read'] }],
    ...[
      { url, eventTypes: ['webhook.test'] },
      { url, eventTypes: ['message.sent', 'message.sent'] },
      { url, other: 1 },
    ],
    ...[
      { url, description: 'a\nb' },
      { url, description: 'a'.repeat(201) },
      { url, status: 'disabled' },
    ],
    ...[{ url: `https://example.com/${'a'.repeat(2048)}` }],
  ]
  for (const body of bodies) {
    const { status, body: refusal } = await api.call('/v1/webhooks', { method: 'POST', body })
    assert.deepEqual([status, refusal.error], [400, 'invalid_request'], JSON.stringify(body))
  }
  // The service validates the request before it checks whether the endpoint exists.
  const change = { method: 'PATCH', body: { url: 'https://127.0.0.1/' } } as const
  const { status } = await api.call(`/v1/webhooks/whk_${'0'.repeat(24)}`, change)
  assert.equal(status, 400)
})

test('webhooks: a change affects only the fields it names', async () => {
  const caller = await stage.createCaller()
  const made = await make(caller, { url, description: 'Ours' })
  const path = `/v1/webhooks/${made.id}`
  const change = (body: object) => caller.api.want<Hook>(path, { method: 'PATCH', body })
  const off = await change({ status: 'disabled' })
  assert.deepEqual([off.status, off.url, off.description], ['disabled', url, 'Ours'])
  const on = await change({ status: 'active', eventTypes: ['domain.failed'], description: null })
  assert.deepEqual([on.status, on.eventTypes, on.description], ['active', ['domain.failed'], null])
  assert.deepEqual(await caller.api.want(path), on)
  const refused = await caller.api.call(path, { method: 'PATCH', body: { url: 'https://10.0.0.1/' } })
  assert.deepEqual([refused.status, refused.body.error], [400, 'invalid_request'])
  assert.equal((await change({ eventTypes: null })).eventTypes, null)
})

test('webhooks: a rotation makes a new secret, and a test is accepted', async () => {
  const caller = await stage.createCaller()
  const made = await make(caller)
  const rotated = await caller.api.want<Hook>(`/v1/webhooks/${made.id}/rotate-secret`, { method: 'POST' })
  assert.equal(rotated.id, made.id)
  assert.notEqual(rotated.secret, made.secret)
  assert.equal((await caller.api.call(`/v1/webhooks/${made.id}/test`, { method: 'POST' })).status, 202)
  assert.deepEqual(await caller.api.want(`/v1/webhooks/${made.id}/deliveries`), {
    deliveries: [],
    nextCursor: null,
  })
})

test('webhooks: a deleted endpoint is gone, and frees its slot', async () => {
  const caller = await stage.createCaller({ limits: { webhookEndpoints: 1 } })
  const made = await make(caller)
  const path = `/v1/webhooks/${made.id}`
  assert.equal((await caller.api.call('/v1/webhooks', { method: 'POST', body: { url } })).status, 403)
  assert.equal((await caller.api.call(path, { method: 'DELETE' })).status, 204)
  for (const [method, suffix] of operations) {
    const body = method === 'PATCH' ? {} : undefined
    const { status } = await caller.api.call(path + suffix, { method, ...(body && { body }) })
    assert.equal(status, 404, `${method} ${suffix}`)
  }
  await make(caller)
})

const operations: [method: string, suffix: string][] = [
  ['GET', ''],
  ['PATCH', ''],
  ['POST', '/rotate-secret'],
  ['POST', '/test'],
  ['GET', '/deliveries'],
  ['POST', `/deliveries/${randomUUID()}/replay`],
  ['DELETE', ''],
]

test('webhooks: the limit of endpoints is exact under parallel calls', async () => {
  const { api } = await stage.createCaller({ limits: { webhookEndpoints: 3 } })
  const tries = Array.from({ length: 12 }, () => api.call('/v1/webhooks', { method: 'POST', body: { url } }))
  const answers = await Promise.all(tries)
  assert.equal(answers.filter(({ status }) => status === 201).length, 3)
  const refused = answers.filter(({ status }) => status !== 201)
  for (const { status, body } of refused) assert.deepEqual([status, body.error], [403, 'limit_reached'])
})

test('check 68: another organization’s endpoint is answered like an unknown one', async () => {
  const [ours, other] = [await stage.createCaller(), await stage.createCaller()]
  const made = await make(ours)
  for (const [method, suffix] of operations) {
    const call = { method, ...(method === 'PATCH' && { body: {} }) }
    const foreign = await other.api.call(`/v1/webhooks/${made.id}${suffix}`, call)
    const missing = await other.api.call(`/v1/webhooks/${unknown}${suffix}`, call)
    assert.deepEqual([foreign.status, foreign.body], [404, missing.body], `${method} ${suffix}`)
  }
  assert.equal((await list(other)).webhooks.length, 0)
  assert.equal((await list(ours)).webhooks.length, 1)
})

test('webhooks: a key restricted to inboxes, or with another scope, is refused', async () => {
  const caller = await stage.createCaller()
  const made = await make(caller)
  const inbox = await caller.api.createInbox()
  const restricted = await caller.createKey({ inboxIds: [inbox.id as never] })
  const unscoped = await caller.createKey({ scopes: ['mailbox:read'] })
  const calls = [
    ...operations.map(([method, suffix]) => ({ method, path: `/v1/webhooks/${made.id}${suffix}` })),
    ...[
      { method: 'GET', path: '/v1/webhooks' },
      { method: 'POST', path: '/v1/webhooks' },
    ],
  ]
  for (const { method, path } of calls) {
    const body = method === 'PATCH' ? {} : path === '/v1/webhooks' && method === 'POST' ? { url } : undefined
    const ask = (api: Caller['api']) => api.call(path, { method, ...(body && { body }) })
    const [a, b] = [await ask(restricted.api), await ask(unscoped.api)]
    assert.deepEqual([a.status, a.body.error], [403, 'inbox_not_allowed'], `${method} ${path}`)
    assert.deepEqual([b.status, b.body.error], [403, 'insufficient_scope'], `${method} ${path}`)
  }
})

test('webhooks: lists are paged, and a cursor is valid for its own list alone', async () => {
  const caller = await stage.createCaller()
  const made = [await make(caller), await make(caller), await make(caller)].map(({ id }) => id)
  const first = await list(caller, '?limit=2')
  const second = await list(caller, `?limit=2&cursor=${first.nextCursor}`)
  const shown = [...first.webhooks, ...second.webhooks].map(({ id }) => id)
  assert.deepEqual([shown.sort(), second.nextCursor], [made.sort(), null])
  const path = `/v1/webhooks/${made[0]}/deliveries?cursor=${first.nextCursor}`
  const { status, body } = await caller.api.call(path)
  assert.deepEqual([status, body.error], [400, 'invalid_cursor'])
})
