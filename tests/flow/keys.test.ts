// Keys from outside: what each restriction allows and refuses, on every node, and that no secret appears anywhere.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { endKey, type KeyInput } from '../../src/flow/accounts/key.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import { errorTable } from '../../src/http/errors.ts'
import { addKey } from '../support/agent-key.ts'
import type { Answer, Refusal } from '../support/api.ts'
import {
  countStatuses,
  type Deployment,
  idsOf,
  makeSender,
  type Operation,
  operations,
  requestOf,
  type Sender,
  sendBy,
} from '../support/deployment.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const place = await makePlace({ after })
const dns = await DnsServer.start()
place.after(() => dns.close())
const sink = await startSink(place)
const node = await startNode(place, {
  env: {
    POSTHORN_DNS: dns.address,
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_LOG_LEVEL: 'trace',
  },
})
const { clock } = node.foundation

/** Behind proxies, and reachable over IPv6 too. */
const front = await startNode(place, {
  env: {
    POSTHORN_DNS: dns.address,
    POSTHORN_HTTP: '[::]:0',
    POSTHORN_TRUSTED_PROXIES: '127.0.0.0/8,198.51.100.0/24,2001:db8:aa::/48',
  },
  roles: ['api'],
})
const nodes = [node, front]

function advance(ms: number): void {
  for (const { foundation } of nodes) foundation.clock.advance(ms)
}

const deployment: Deployment = { place, dns, nodes, advance }

/** Another key of the sender's organization. */
async function addSender(sender: Sender, input: Partial<KeyInput>): Promise<Sender> {
  const { keyId, secret } = await addKey(node, sender, input)
  return { ...sender, keyId, secret, api: node.meet({ secret }) }
}

const outcome = ({ status, body }: Answer<{ error?: string }>) => [status, body?.error]
const ok = [202, undefined]

function me(at: TestNode, headers: Record<string, string>): Promise<Response> {
  return fetch(`http://127.0.0.1:${at.app.listening.http!.port}/v1/me`, { headers })
}

test('check 69: a key that may only reply begins no conversation, by any operation', async () => {
  const sender = await makeSender(deployment)
  const replier = await addSender(sender, { sendMode: 'reply_only' })
  const refused = [403, 'send_mode_reply_only']
  const wanted: Record<Operation, unknown[]> = { message: refused, send: refused, reply: ok }
  for (const operation of operations) {
    assert.deepEqual(outcome(await sendBy(replier.api, replier, operation)), wanted[operation], operation)
    // A key that may send in this way gets the result of another key. Other keys do not.
    const key = `${operation}-replayed`
    const first = await sendBy(sender.api, sender, operation, { key })
    const again = await sendBy(replier.api, replier, operation, { key })
    if (operation !== 'reply') assert.deepEqual(outcome(again), refused)
    else assert.deepEqual([again.status, again.body.replayed, idsOf(again)], [202, true, idsOf(first)])
  }
})

test('check 41, 69: recipient domains cannot be evaded', async (t) => {
  const sender = await makeSender(deployment)
  const key = await addSender(sender, {
    allowedRecipientDomains: ['Good.Example.', 'bücher.example', 'far.test'],
  })
  const refused = [403, 'recipient_domain_not_allowed']
  const unreadable = [400, 'invalid_request']
  const addresses: [email: string, wanted: unknown[]][] = [
    ['a@good.example', ok],
    ['A@GOOD.Example', ok],
    ['a@bücher.example', ok],
    ['a@BÜCHER.example', ok],
    ['a@xn--bcher-kva.example', ok],
    ['a@XN--BCHER-KVA.EXAMPLE', ok],
    ['a@good\u3002example', ok],
    ['a@ｇｏｏｄ.example', ok],
    ['"a@evil.example x"@good.example', ok],
    ['"a@evil.example"@good.example', ok],
    ['"\\"@evil.example"@good.example', ok],
    ['"a@good.example"@evil.example', refused],
    ['"a@good.example x"@evil.example', refused],
    ['a@evil.example', refused],
    ['a@sub.good.example', refused],
    ['a@notgood.example', refused],
    ['a@good.example.evil.example', refused],
    ['a@bucher.example', refused],
    ['a@xn--good.example', refused],
    ['a%evil.example@good.example', ok],
    ['evil.example!a@good.example', ok],
    ['a@good.example.', unreadable],
    ['a@evil.example,b@good.example', unreadable],
    ['a@evil.example b@good.example', unreadable],
    ['a@evil.example;b@good.example', unreadable],
    ['a@good.example\u0000@evil.example', unreadable],
    ['a@evil.example(@good.example', unreadable],
    ['a@evil.example(x)@good.example', unreadable],
    ['<a@evil.example>@good.example', unreadable],
    ['@good.example:a@evil.example', unreadable],
    ['Good <a@evil.example>', unreadable],
    ['group: a@evil.example;@good.example', unreadable],
    ['undisclosed-recipients:;', unreadable],
    ['a@[127.0.0.1]', unreadable],
    ['a@good.example>\r\nRCPT TO:<b@evil.example', unreadable],
    ['a@evil.example@good.example', unreadable],
  ]
  for (const [email, wanted] of addresses)
    for (const operation of ['message', 'send'] as const)
      await t.test(`${operation} to ${JSON.stringify(email)} is allowed or refused`, async () => {
        const answer = await sendBy(key.api, key, operation, { change: { to: [{ email }] } })
        assert.deepEqual(outcome(answer), wanted)
        if (answer.status === 202)
          assert.match(answer.body.submission.recipients[0]!.email, /@(?:good|xn--bcher-kva)\.example$/)
      })
  for (const field of ['cc', 'bcc'])
    await t.test(`a stranger in ${field} is refused`, async () => {
      const change = { [field]: [{ email: 'a@good.example' }, { email: 'b@evil.example' }] }
      assert.deepEqual(outcome(await sendBy(key.api, key, 'message', { change })), refused)
    })
})

test('check 41, 69: replies keep to the recipient domains, wherever the other side asks for them', async (t) => {
  const sender = await makeSender(deployment)
  const { inbox } = sender
  const { api } = await addSender(sender, {
    sendMode: 'reply_only',
    allowedRecipientDomains: ['good.example'],
  })
  const mails: [name: string, header: string, replyAll: boolean, wanted: unknown[]][] = [
    ['from here', 'From: a@good.example', false, ok],
    ['from a stranger', 'From: a@evil.example', false, [403, 'recipient_domain_not_allowed']],
    [
      ...(['a stranger’s reply-to', 'From: a@good.example\r\nReply-To: b@evil.example', false] as const),
      [403, 'recipient_domain_not_allowed'],
    ],
    [
      ...(['a name that is an address', 'From: "a@good.example" <b@evil.example>', false] as const),
      [403, 'recipient_domain_not_allowed'],
    ],
    ['a reply-to from here', 'From: b@evil.example\r\nReply-To: a@GOOD.example', false, ok],
    [
      ...(['a stranger in cc', 'From: a@good.example\r\nCc: b@evil.example', true] as const),
      [403, 'recipient_domain_not_allowed'],
    ],
    ['a stranger in cc who is not answered', 'From: a@good.example\r\nCc: b@evil.example', false, ok],
    ['nobody to answer', 'From: undisclosed:;', false, [400, 'invalid_request']],
    ['no From at all', 'X-From: a@evil.example', false, [400, 'invalid_request']],
    ['an address that is none', 'From: a@b@good.example', false, [400, 'invalid_request']],
  ]
  for (const [index, [name, header, replyAll, wanted]] of mails.entries())
    await t.test(`a reply is allowed or refused: ${name}`, async () => {
      const id = `<m${index}@far.test>`
      const raw = Buffer.from(`${header}\r\nMessage-ID: ${id}\r\nSubject: ${name}\r\n\r\nHello.\r\n`)
      // With the null sender, a mail without an address in From takes the sender of its envelope.
      const sent = await sendMail(node.smtp, { from: '', to: inbox.address, raw })
      assert.equal(sent.outcome, 'accepted')
      const message = await until('the mail to be filed', async () =>
        (await api.exported(inbox.id)).find(({ internetMessageId }) => internetMessageId === id),
      )
      const answer = await api.call(`/v1/threads/${message.threadId}/replies`, {
        method: 'POST',
        idempotencyKey: `reply-${index}-key`,
        body: { targetMessageId: message.id, text: 'T', replyAll },
      })
      assert.deepEqual(outcome(answer), wanted)
    })
})

test('check 69: callers’ addresses are compared as addresses, and only trusted proxies may name them', async (t) => {
  const makeSecret = async (allowedIps: string[]) => (await node.createCaller({ key: { allowedIps } })).secret
  const local = await makeSecret(['::FFFF:127.0.0.1'])
  const elsewhere = await makeSecret(['203.0.113.5'])
  const claims: Record<string, string>[] = [
    { 'x-forwarded-for': '203.0.113.5' },
    { forwarded: 'for=203.0.113.5' },
    { 'x-real-ip': '203.0.113.5' },
    { 'true-client-ip': '203.0.113.5', 'cf-connecting-ip': '203.0.113.5' },
  ]
  for (const claim of [{}, ...claims]) {
    const name = JSON.stringify(claim)
    assert.equal((await me(node, { ...claim, 'x-api-key': local })).status, 200, name)
    assert.equal((await me(node, { ...claim, 'x-api-key': elsewhere })).status, 401, name)
  }

  const behind = await makeSecret(['203.0.113.5', '2001:0DB8:0:0::7'])
  const chains: [forwarded: string, status: number][] = [
    ['203.0.113.5', 200],
    ['  203.0.113.5  ', 200],
    ['::ffff:203.0.113.5', 200],
    ['::FFFF:cb00:7105', 200],
    ['2001:db8::7', 200],
    ['2001:DB8:0000::0007', 200],
    ['203.0.113.5, 198.51.100.9', 200],
    ['203.0.113.5, 2001:db8:aa::1, 198.51.100.9', 200],
    ['junk, 203.0.113.5', 200],
    ['192.0.2.1, 203.0.113.5', 200],
    ['203.0.113.5, 192.0.2.1', 401],
    ['203.0.113.5, 192.0.2.1, 198.51.100.9', 401],
    ['203.0.113.5, junk', 401],
    ['203.0.113.5, ', 200],
    ['203.0.113.5:443', 401],
    ['[2001:db8::7]', 401],
    ['203.0.113.05', 401],
    ['3405803781', 401],
    ['0xcb007105', 401],
    ['203.0.113.5%eth0', 401],
    ['for=203.0.113.5', 401],
    ['"203.0.113.5"', 401],
    ['127.0.0.1', 401],
    ['', 401],
    [`${'9.9.9.9, '.repeat(1000)}203.0.113.5`, 200],
    [`203.0.113.5${', 198.51.100.9'.repeat(900)}`, 200],
  ]
  for (const [forwarded, status] of chains)
    await t.test(`x-forwarded-for: ${forwarded.slice(0, 60)}: ${status}`, async () => {
      const answer = await me(front, { 'x-forwarded-for': forwarded, 'x-api-key': behind })
      assert.equal(answer.status, status)
    })
  await t.test('a repeated field counts as one list', async () => {
    const { port } = front.app.listening.http!
    const headers = [
      'host',
      'x',
      'x-api-key',
      behind,
      'x-forwarded-for',
      '203.0.113.5',
      'x-forwarded-for',
      '192.0.2.1',
    ]
    const asked = request({ host: '127.0.0.1', port, path: '/v1/me', headers: headers as never }).end()
    const [response] = await once(asked, 'response')
    response.resume()
    assert.equal(response.statusCode, 401)
  })
})

test('check 69: a caller’s mapped IPv6 address counts as its IPv4 address', async () => {
  const { secret } = await node.createCaller({ key: { allowedIps: ['127.0.0.1'] } })
  const { port } = front.app.listening.http!
  const ask = (host: string) => fetch(`http://${host}:${port}/v1/me`, { headers: { 'x-api-key': secret } })
  assert.equal((await ask('127.0.0.1')).status, 200)
  assert.equal((await ask('[::1]')).status, 401)
})

test('check 69: every node knows a revoked, expired or suspended key at once, for every operation', async () => {
  const sender = await makeSender(deployment)
  const paths: [method: string, path: string][] = [
    ['GET', '/v1/me'],
    ['GET', '/v1/inboxes'],
    ['POST', '/v1/inboxes'],
    ['DELETE', `/v1/inboxes/${sender.inbox.id}`],
    ['POST', '/v1/suppressions'],
    ['GET', '/v1/events'],
    ['GET', '/v1/metrics/delivery'],
    ...operations.map((operation): [string, string] => ['POST', requestOf(sender, operation).path]),
  ]
  /** Warms both nodes with the key, ends it, and calls every operation on both. */
  const everywhere = async (key: { secret: string }, end: () => unknown): Promise<string[]> => {
    const apis = nodes.map((node) => node.meet(key))
    for (const api of apis) await api.want('/v1/me')
    await end()
    const answers = await Promise.all(
      apis.flatMap((api) =>
        paths.map(([method, path]) => api.call(path, { method, body: method === 'POST' ? {} : undefined })),
      ),
    )
    return [...new Set(answers.map(({ status, body }) => `${status} ${JSON.stringify(body)}`))]
  }
  const unauthorized = `401 ${JSON.stringify({ error: 'unauthorized', message: errorTable.unauthorized[1] })}`

  const revoked = await addSender(sender, {})
  assert.deepEqual(await everywhere(revoked, () => endKey(node.foundation, revoked.keyId)), [unauthorized])
  const expiring = await addSender(sender, { expiresInMs: 3_600_000 })
  assert.deepEqual(await everywhere(expiring, () => advance(3_600_000)), [unauthorized])
  for (const other of ['', 'ph_0', sender.secret.toLowerCase(), `${sender.secret} `, `x${sender.secret}`]) {
    const answer = await me(node, {
      ...(other && { 'x-api-key': other }),
      authorization: `Bearer ${sender.secret}`,
    })
    // A header's value ends before its trailing spaces.
    if (other.trim() === sender.secret) continue
    assert.equal(`${answer.status} ${await answer.text()}`, unauthorized)
  }

  const inactive = `403 ${JSON.stringify({ error: 'organization_inactive', message: errorTable.organization_inactive[1] })}`
  const suspend = () => changeOrganizationStatus(node.foundation, sender.organizationId, 'suspended')
  assert.deepEqual(await everywhere(sender, suspend), [inactive])
  await changeOrganizationStatus(node.foundation, sender.organizationId, 'active')
  for (const node of nodes) await node.meet(sender).want('/v1/me')
})

test('check 69: a request with a slow body obeys its key’s state at the end', async () => {
  const caller = await node.createCaller()
  const suspended = await node.createCaller()
  const { host, port } = node.app.listening.http!
  const begin = async (secret: string) => {
    const socket = connect(port, host)
    await once(socket, 'connect')
    const head = [
      ...['POST /v1/inboxes HTTP/1.1', 'host: x', 'connection: close', `x-api-key: ${secret}`],
      ...['content-type: application/json', 'content-length: 2', '', '{'],
    ]
    socket.write(head.join('\r\n'))
    return socket
  }
  const end = async (socket: Awaited<ReturnType<typeof begin>>) => {
    socket.write('}')
    let said = ''
    for await (const chunk of socket) said += chunk
    return said.split(' ')[1]
  }
  const sockets = [await begin(caller.secret), await begin(suspended.secret)] as const
  await endKey(node.foundation, caller.keyId)
  await changeOrganizationStatus(node.foundation, suspended.organizationId, 'suspended')
  assert.deepEqual([await end(sockets[0]), await end(sockets[1])], ['401', '403'])
  const organizationIds = [caller, suspended].map(({ organizationId }) => organizationId)
  const [row] = await node.foundation.db.query<{ count: number }>(
    'select count(*) from inbox where organization_id = any($1)',
    [organizationIds],
  )
  assert.equal(row!.count, 0)
})

test('check 69: a key ends to the second', async (t) => {
  const { api, keyId } = await node.createCaller({ key: { expiresInMs: 3_600_000 } })
  const { apiKey } = await api.want<{ apiKey: { expiresAt: string } }>('/v1/me')
  const [row] = await node.foundation.db.query<{ at: Date }>(
    'select expires_at as at from api_key where id = $1',
    [keyId],
  )
  assert.equal(apiKey.expiresAt, row!.at.toISOString())
  stopAt(t, row!.at.getTime() - 1_000)
  assert.equal((await api.call('/v1/me')).status, 200)
  advance(999)
  assert.equal((await api.call('/v1/me')).status, 200)
  advance(1)
  assert.equal((await api.call('/v1/me')).status, 401)
})

/** Stops the clock at this time. Only `advance` moves it. */
function stopAt(t: TestContext, atMs: number): void {
  const stoppedMs = performance.now()
  t.mock.method(performance, 'now', () => stoppedMs)
  advance(atMs - clock.nowMs())
}

test('check 78, 95: a burst on two nodes gets the key’s requests within 5 %, and refused requests do nothing', async () => {
  // The window begins with the minute, so the test stays clear of its end.
  const toMinute = 60_000 - (clock.nowMs() % 60_000)
  advance(toMinute)
  for (const limit of [10, 100]) {
    const caller = await node.createCaller({ key: { requestsPerMinute: limit } })
    const apis = nodes.map((node) => node.meet(caller))
    const answers = await Promise.all(
      Array.from({ length: 3 * limit }, (_, index) =>
        apis[index % 2]!.call('/v1/inboxes', { method: 'POST', body: {} }),
      ),
    )
    const { 201: allowed = 0, 429: refused = 0 } = countStatuses(answers)
    assert.equal(allowed + refused, 3 * limit)
    assert.ok(allowed <= limit && allowed >= limit * 0.95, `${allowed} of ${limit}`)
    const [row] = await node.foundation.db.query<{ count: number }>(
      'select count(*) from inbox where organization_id = $1',
      [caller.organizationId],
    )
    assert.equal(row!.count, allowed)
    for (const { status, body, headers } of answers as Answer<Refusal>[]) {
      if (status !== 429) continue
      assert.equal(body.error, 'rate_limited')
      assert.match(headers.get('retry-after') ?? '', /^(?:[1-9]|[1-5]\d|60)$/)
    }
  }
})

test('check 69: no log, table, webhook, mail or answer has a key', async (t) => {
  const receiver = await startReceiver(t)
  const { api, secret } = await node.createCaller()
  const { http } = node.app.listening
  const said: string[] = []
  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = { 'x-api-key': secret, ...(init.headers as Record<string, string>) }
    const response = await fetch(`http://${http!.host}:${http!.port}${path}`, { ...init, headers })
    said.push(JSON.stringify([...response.headers]), await response.text())
    return response.status
  }
  await api.want('/v1/webhooks', { method: 'POST', body: { url: receiver.url() }, status: 201 })
  const inbox = await api.createInbox()
  const json = { 'content-type': 'application/json', 'idempotency-key': 'key-one-1' }
  const body = JSON.stringify({ to: [{ email: 'watched@far.test' }], subject: 'S', text: 'T' })
  assert.equal(await ask(`/v1/inboxes/${inbox.id}/messages`, { method: 'POST', headers: json, body }), 202)
  await until('the webhook', () => receiver.calls.length >= 2)
  await until('the mail', () => sink.copies.some(({ recipient }) => recipient === 'watched@far.test'))
  const paths = [
    '/v1/me',
    '/v1/inboxes',
    `/v1/inboxes/${inbox.id}/export`,
    '/v1/submissions',
    '/v1/metrics/delivery',
  ]
  for (const path of paths) assert.equal(await ask(path), 200)
  assert.equal(await ask('/v1/inboxes', { method: 'POST', headers: json, body: '{"' }), 400)
  assert.equal(await ask('/v1/inboxes/inb_000000000000000000000000'), 404)
  assert.equal(await ask('/v1/me', { headers: { 'x-api-key': `${secret}x` } }), 401)
  const query = new URLSearchParams({ 'x-api-key': secret, api_key: secret })
  assert.equal(await ask(`/v1/me?${query}`, { headers: { 'x-api-key': '' } }), 401)
  assert.equal(await ask('/v1/me', { headers: { 'x-api-key': '', authorization: `Bearer ${secret}` } }), 401)
  const operator = node.app.listening.operator
  const metrics = await fetch(`http://${operator.host}:${operator.port}/metrics`)
  const tables = await node.foundation.db.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  const rows = await Promise.all(
    tables.map(({ name }) => node.foundation.db.query(`select row_to_json(x)::text as row from ${name} x`)),
  )
  const everything: Record<string, string> = {
    log: node.log(),
    tables: JSON.stringify(rows),
    webhooks: receiver.calls.map(({ headers, raw }) => JSON.stringify(headers) + raw).join('\n'),
    mail: sink.copies.map(({ raw }) => raw.toString('latin1')).join('\n'),
    answers: said.join('\n'),
    metrics: await metrics.text(),
  }
  for (const [place, text] of Object.entries(everything)) {
    assert.ok(text.length > 100, `there is something in ${place}`)
    assert.ok(!text.includes(secret.slice(3, 40)), `a secret in ${place}`)
  }
})
