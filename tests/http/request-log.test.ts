// F23: the x-request-id of an answer leads to one log line, which describes the request and contains no secret.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { until } from '../support/until.ts'
import { enterAs, password } from './app/visitor.ts'
import { ask, setStage } from './stage.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const { secret, api, organizationId } = await stage.createCaller()
const inbox = await api.createInbox('logged')

type Line = Record<string, unknown> & { level: number }

/** Returns the request's log line as soon as it is written. */
async function lineOf(requestId: string): Promise<Line> {
  assert.ok(requestId)
  const found = await until(`the line of ${requestId}`, () => {
    const lines = stage.log().split('\n')
    const own = lines.filter((line) => line.includes(`"requestId":"${requestId}"`))
    return own.length > 0 ? own : null
  })
  assert.equal(found.length, 1)
  const { time: _, pid: __, hostname: ___, msg, ms, ...line } = JSON.parse(found[0]!)
  assert.deepEqual([msg, Number.isInteger(ms)], ['request answered', true])
  return line
}

const json = { 'content-type': 'application/json', 'idempotency-key': 'logged-requests' }
const noThread = `thr_${'0'.repeat(24)}`

for (const [method, path, options, told] of [
  ['GET', `/v1/inboxes/${inbox.id}`, { secret }, { route: '/v1/inboxes/:inboxId', status: 200 }],
  [
    'GET',
    `/v1/threads/${noThread}`,
    { secret },
    { route: '/v1/threads/:threadId', status: 404, error: 'not_found' },
  ],
  [
    'POST',
    `/v1/inboxes/${inbox.id}/messages?token=q1u2e3r4y`,
    { secret, headers: json, body: '{"subject": "swordfish-in-a-body"}' },
    { route: '/v1/inboxes/:inboxId/messages', status: 400, error: 'invalid_request' },
  ],
  [
    'GET',
    '/v1/me',
    { secret: 'ph_swordfish' },
    { route: '/v1/me', status: 401, error: 'unauthorized', organization: null },
  ],
  ['GET', '/v1/swordfish', {}, { route: null, status: 404, error: 'route_not_found', organization: null }],
  [
    'GET',
    '/v1/%zz',
    {},
    { method: null, route: null, status: 404, error: 'route_not_found', organization: null },
  ],
] as const)
  test(`an answer with status ${told.status} is logged: ${method} ${path.slice(0, 20)}`, async () => {
    const { status, headers } = await ask(stage, method, path, options)
    assert.equal(status, told.status)
    const requestId = headers.get('x-request-id')!
    assert.deepEqual(await lineOf(requestId), {
      level: 20,
      requestId,
      method,
      organization: organizationId,
      ...told,
    })
  })

test('a request that is not HTTP is logged too', async () => {
  const socket = connect({ host: '127.0.0.1', port: stage.port })
  socket.setEncoding('latin1')
  let answer = ''
  socket.on('data', (text: string) => (answer += text))
  socket.write('swordfish\r\n\r\n')
  await once(socket, 'close')
  const requestId = /^x-request-id: (\S+)\r$/m.exec(answer)![1]!
  const { status, error } = await lineOf(requestId)
  assert.deepEqual([status, error], [400, 'invalid_request'])
})

test('a session’s requests name its organization', async () => {
  const member = await stage.createCaller()
  const visitor = await enterAs(stage, member)
  const own = await visitor.call('/members')
  const line = await lineOf(own.headers.get('x-request-id')!)
  assert.deepEqual(
    [line['route'], line['status'], line['organization']],
    ['/app/v1/members', 200, member.organizationId],
  )
  const shared = await visitor.call('/inboxes')
  assert.equal((await lineOf(shared.headers.get('x-request-id')!))['organization'], member.organizationId)
})

test('no line has a body, a key, a query or a path’s values', () => {
  assert.doesNotMatch(stage.log(), new RegExp(`swordfish|q1u2e3r4y|${secret}|${password}|${noThread}`))
})
