// Tests who may call, the order of checks on a request, and the headers that every answer carries.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operationsOf, readDocument } from './document.ts'
import { ask, type CallerOptions, setStage } from './stage.ts'

const stage = await setStage({ after })
const json = { 'content-type': 'application/json' }

test('check 69, check 71: requests are judged in a fixed order', async (t) => {
  const { createCaller } = stage
  const callers = {
    good: await createCaller(),
    suspended: await createCaller({ status: 'pending' }),
    spent: await createCaller({ key: { requestsPerMinute: 0 } }),
    spentAndSuspended: await createCaller({ status: 'pending', key: { requestsPerMinute: 0 } }),
    scopeless: await createCaller({ key: { scopes: ['delivery:read'] } }),
  }
  const unknownInbox = '/v1/inboxes/inb_000000000000000000000000/messages'
  const junk = { headers: { ...json, 'idempotency-key': 'x' }, body: '{"' }
  const cases: [
    caller: keyof typeof callers | null,
    method: string,
    path: string,
    request: object,
    status: number,
    error: string,
  ][] = [
    [null, 'GET', '/v1/nothing', {}, 404, 'route_not_found'],
    [null, 'PUT', '/v1/me', { headers: json, body: '{"' }, 404, 'route_not_found'],
    [null, 'POST', '/v1/me', { headers: { 'content-type': 'junk' }, body: 'x' }, 404, 'route_not_found'],
    [null, 'GET', '/v1/me/', {}, 404, 'route_not_found'],
    [null, 'GET', '/v1/inboxes/%zz', {}, 404, 'route_not_found'],
    [null, 'GET', `/v1/inboxes/${'x'.repeat(5000)}`, {}, 401, 'unauthorized'],
    [null, 'POST', unknownInbox, junk, 401, 'unauthorized'],
    ['spentAndSuspended', 'POST', unknownInbox, junk, 429, 'rate_limited'],
    ['spent', 'POST', unknownInbox, junk, 429, 'rate_limited'],
    ['suspended', 'GET', '/v1/me', {}, 403, 'organization_inactive'],
    ['suspended', 'POST', unknownInbox, junk, 403, 'organization_inactive'],
    ['scopeless', 'POST', unknownInbox, junk, 403, 'insufficient_scope'],
    ['good', 'POST', unknownInbox, junk, 400, 'invalid_json'],
    ['good', 'POST', unknownInbox, { ...junk, body: '{}' }, 400, 'invalid_request'],
    ['good', 'GET', '/v1/inboxes/x', {}, 400, 'invalid_request'],
    ['good', 'GET', `/v1/inboxes/${'x'.repeat(5000)}`, {}, 400, 'invalid_request'],
    ['good', 'GET', `${unknownInbox}?cursor=x`, {}, 400, 'invalid_cursor'],
    ['good', 'GET', unknownInbox, {}, 404, 'not_found'],
    ['good', 'GET', `/v1/me?x-api-key=y`, {}, 400, 'invalid_request'],
  ]
  for (const [caller, method, path, request, status, error] of cases)
    await t.test(`${caller ?? 'nobody'}: ${method} ${path.slice(0, 60)} is ${status} ${error}`, async () => {
      const answer = await ask(stage, method, path, {
        ...request,
        ...(caller && { secret: callers[caller].secret }),
      })
      assert.deepEqual([answer.status, answer.body.error], [status, error])
      assert.deepEqual(Object.keys(answer.body), ['error', 'message'])
      assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
      assert.equal(answer.headers.get('cache-control'), 'no-store')
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
      assert.match(answer.headers.get('x-request-id') ?? '', /^[\w-]{8,}$/)
      assert.equal(answer.headers.has('ratelimit'), status !== 401 && error !== 'route_not_found')
      assert.equal(answer.headers.has('retry-after'), status === 429)
    })
})

test('check 69: every key that cannot authenticate gets the same answer', async (t) => {
  const good = await stage.createCaller()
  const elsewhere = await good.createKey({ allowedIps: ['203.0.113.5'] })
  const shortLived = await good.createKey({ expiresInMs: 10_000 })
  const here = await good.createKey({ allowedIps: ['127.0.0.1'] })
  const me = (secret?: string, headers = {}) =>
    ask(stage, 'GET', '/v1/me', { ...(secret && { secret }), headers })
  const refusal = (await me()).body

  assert.equal((await me(here.secret)).status, 200)
  assert.equal((await me(shortLived.secret)).status, 200)
  stage.clock.advance(10_000)
  const last = good.secret.at(-1) === 'a' ? 'b' : 'a'
  const secrets: [name: string, secret: string, headers?: Record<string, string>][] = [
    ['expired to the second', shortLived.secret],
    ['of another address', elsewhere.secret],
    [
      'of another address, which x-forwarded-for claims',
      elsewhere.secret,
      { 'x-forwarded-for': '203.0.113.5', forwarded: 'for=203.0.113.5' },
    ],
    ['with a typo', good.secret.slice(0, -1) + last],
    ['empty', ''],
    ['in two headers', `${good.secret}, ${good.secret}`],
    ['as a bearer token', '', { authorization: `Bearer ${good.secret}` }],
    ['of a kilobyte', 'p'.repeat(1000)],
  ]
  for (const [name, secret, headers] of secrets)
    await t.test(`a key is refused: ${name}`, async () => {
      const answer = await me(secret, headers)
      assert.equal(answer.status, 401)
      assert.deepEqual(answer.body, refusal)
    })
  await t.test('a key in the query gives no access, and is not logged', async () => {
    const { status } = await ask(stage, 'GET', `/v1/me?x-api-key=${good.secret}`)
    assert.equal(status, 401)
    assert.ok(!stage.log().includes(good.secret))
  })
})

test('check 69: x-forwarded-for is believed from trusted proxies, for the address they saw', async (t) => {
  const stage = await setStage(t, { trustedProxies: ['127.0.0.0/8', '198.51.100.0/24'] })
  const { secret } = await stage.createCaller({ key: { allowedIps: ['203.0.113.5', '2001:db8::7'] } })
  const cases: [forwarded: string, status: number][] = [
    ['203.0.113.5', 200],
    ['203.0.113.5, 198.51.100.9', 200],
    ['2001:0db8:0:0::7', 200],
    ['::ffff:203.0.113.5', 200],
    ['203.0.113.6', 401],
    ['203.0.113.5, 192.0.2.1', 401],
    ['junk', 401],
  ]
  for (const [forwarded, status] of cases)
    await t.test(`${forwarded}: ${status}`, async () => {
      const answer = await ask(stage, 'GET', '/v1/me', { secret, headers: { 'x-forwarded-for': forwarded } })
      assert.equal(answer.status, status)
    })
})

test('check 78: the request rate is exact, shown in headers, and a 429 has no effect', async () => {
  const { secret, organizationId } = await stage.createCaller({ key: { requestsPerMinute: 5 } })
  const create = () => ask(stage, 'POST', '/v1/inboxes', { secret, headers: json, body: '{}' })
  const answers = await Promise.all(Array.from({ length: 20 }, create))
  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 201).length, 5)
  assert.equal(statuses.filter((status) => status === 429).length, 15)
  for (const { status, headers, body } of answers) {
    assert.equal(headers.get('ratelimit-policy'), '"requests";q=5;w=60')
    assert.match(headers.get('ratelimit') ?? '', /^"requests";r=[0-4];t=([1-9]|[1-5]\d|60)$/)
    if (status !== 429) continue
    assert.equal(body.error, 'rate_limited')
    assert.match(headers.get('retry-after') ?? '', /^([1-9]|[1-5]\d|60)$/)
  }
  const sql = 'select count(*) as inboxes from inbox where organization_id = $1'
  const [count] = await stage.db.query<{ inboxes: number }>(sql, [organizationId])
  assert.equal(count?.inboxes, 5)
})

test('check 69: a key reaches only the operations of its scope', async (t) => {
  const operations = [
    ['mailbox:manage', 'POST', '/v1/inboxes'],
    ['mailbox:manage', 'DELETE', '/v1/inboxes/inb_000000000000000000000000'],
    ['mailbox:manage', 'DELETE', '/v1/messages/msg_000000000000000000000000'],
    ['mailbox:read', 'GET', '/v1/inboxes'],
    ['mailbox:read', 'GET', '/v1/inboxes/inb_000000000000000000000000'],
    ['mailbox:read', 'GET', '/v1/inboxes/inb_000000000000000000000000/export'],
    ['mailbox:read', 'GET', '/v1/inboxes/inb_000000000000000000000000/threads'],
    ['mailbox:read', 'GET', '/v1/inboxes/inb_000000000000000000000000/messages'],
    ['mailbox:read', 'GET', '/v1/messages/msg_000000000000000000000000'],
    ['mailbox:read', 'GET', '/v1/messages/msg_000000000000000000000000/source'],
    [
      ...(['mailbox:read', 'GET'] as const),
      '/v1/messages/msg_000000000000000000000000/attachments/att_000000000000000000000000_1',
    ],
    ['mailbox:read', 'GET', '/v1/threads/thr_000000000000000000000000'],
    ['mailbox:send', 'POST', '/v1/inboxes/inb_000000000000000000000000/messages'],
    ['mailbox:send', 'POST', '/v1/threads/thr_000000000000000000000000/replies'],
    ['delivery:send', 'POST', '/v1/send'],
    ['delivery:read', 'GET', '/v1/submissions'],
    ['delivery:read', 'GET', '/v1/submissions/00000000-0000-0000-0000-000000000000'],
    ['delivery:read', 'GET', '/v1/submissions/00000000-0000-0000-0000-000000000000/events'],
  ] as const
  const scopes = [...new Set(operations.map(([scope]) => scope))]
  const withScope = (scope: string): CallerOptions => ({ key: { scopes: [scope] } })
  for (const held of [...scopes, '*', 'webhook:manage']) {
    const { secret } = await stage.createCaller(withScope(held))
    for (const [needed, method, path] of operations)
      await t.test(`a key with ${held} is admitted or refused at ${method} ${path}`, async () => {
        const { status, body } = await ask(stage, method, path, { secret })
        const isLetIn = held === needed || held === '*'
        assert.equal(body.error === 'insufficient_scope', !isLetIn)
        assert.equal(status === 403, !isLetIn)
      })
  }
})

test('HEAD answers like GET without its content, and OPTIONS names the methods', async (t) => {
  const { secret, api } = await stage.createCaller()
  const inbox = await api.createInbox()
  await stage.receive(inbox.address, `Subject: Long\n\n${'line of text\n'.repeat(30_000)}`)
  const [message] = (await api.want<{ messages: { id: string }[] }>(`/v1/inboxes/${inbox.id}/messages`))
    .messages
  const ids: Record<string, string> = { inboxId: inbox.id, messageId: message!.id }
  const withIds = (path: string) => path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'x')
  const described = Map.groupBy(operationsOf(await readDocument(stage.base)), ({ path }) => path)
  const others = ['/docs', '/openapi.json', '/app/v1/audit'].map((path) => ({ path, taken: ['GET'] }))
  const resources = [...described].map(([path, operations]) => ({
    path,
    taken: operations.map(({ method }) => method.toUpperCase()),
  }))
  for (const { path, taken } of [...resources, ...others])
    await t.test(`${path} answers OPTIONS and HEAD`, async () => {
      const url = stage.base + withIds(path)
      const asked = await fetch(url, { method: 'OPTIONS' })
      const allowed = [...taken, ...(taken.includes('GET') ? ['HEAD'] : []), 'OPTIONS']
      assert.deepEqual([asked.status, asked.headers.get('allow')?.split(', ').sort()], [204, allowed.sort()])
      if (!taken.includes('GET') || path === '/v1/events') return
      const headers = { 'x-api-key': secret }
      const [got, head] = [await fetch(url, { headers }), await fetch(url, { method: 'HEAD', headers })]
      assert.equal(head.status, got.status)
      assert.equal(await head.text(), '')
      assert.equal(head.headers.get('content-type'), got.headers.get('content-type'))
      const length = (await got.arrayBuffer()).byteLength
      if (head.headers.has('content-length') && !got.headers.has('content-encoding'))
        assert.equal(Number(head.headers.get('content-length')), length)
    })
  await t.test('HEAD of the live stream ends', async () => {
    const head = await fetch(`${stage.base}/v1/events`, { method: 'HEAD', headers: { 'x-api-key': secret } })
    assert.deepEqual(
      [head.status, head.headers.get('content-type')],
      [200, 'text/event-stream; charset=utf-8'],
    )
  })
  await t.test('without a key HEAD is refused like GET, and unknown paths have no OPTIONS', async () => {
    assert.equal((await fetch(`${stage.base}/v1/me`, { method: 'HEAD' })).status, 401)
    assert.equal((await fetch(`${stage.base}/v1/nothing`, { method: 'OPTIONS' })).status, 404)
  })
})
