// The operator's desk shows nodes, backlog, doctor results, numbers and mail, only to operators, by link or own address.
// Access: once by a link, from the desk itself, and by an address of the machine. All other access is refused.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { createDeskLink, deskSessionMs, linkMs } from '../../src/flow/people/operator-access.ts'
import { listOperatorMail, readOperatorMail } from '../../src/flow/reading/operator-mail.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import { presentWhole } from '../../src/operator/desk/present-mail.ts'
import { createOperatorServer } from '../../src/operator/server.ts'
import { deskOf, openedDesk } from '../support/desk.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const env = { POSTHORN_DELIVERY: 'capture' }
const node = await startNode(place, { env })
const desk = await openedDesk(node)

// A second node is started for it.
test('nodes show what they run, and a lost one is shown', async (t) => {
  const second = await startNode(place, { env, roles: ['api', 'webhooks'] })
  t.after(() => second.stop())
  const { port } = second.app.listening.operator
  const { nodes, backlog } = await desk.get<{
    nodes: {
      id: number
      roles: string[]
      operator: string
      smtp: string | null
      isAlive: boolean
      version: string
    }[]
    backlog: Record<string, unknown>
  }>('/nodes')
  assert.equal(nodes.length, 2)
  assert.ok(nodes.every(({ isAlive, version }) => isAlive && /^\d+\.\d+\.\d+/.test(version)))
  const [first, other] = nodes
  assert.ok(first!.roles.includes('mx') && first!.smtp !== null)
  assert.deepEqual(
    [other!.roles, other!.operator, other!.smtp],
    [['api', 'webhooks'], `127.0.0.1:${port}`, null],
  )
  assert.equal(backlog['spooled'], 0)
  await node.foundation.db.query(`insert into node (id, started_at) values (nextval('node_id'), now())`)
  const [, , lost] = (await desk.get<{ nodes: { isAlive: boolean; roles: string[] }[] }>('/nodes')).nodes
  assert.deepEqual([lost!.isAlive, lost!.roles], [false, []])
})

test('the doctor’s checks run on request, and stay', async () => {
  type Health = { state: string; checks: { name: string; status: string; mend: string | null }[] }
  assert.deepEqual((await desk.get<Health>('/health')).state, 'none')
  assert.equal((await desk.post<Health>('/health')).state, 'running')
  const { state, checks } = await until('the checks', async () => {
    const health = await desk.get<Health>('/health')
    return health.state === 'running' ? null : health
  })
  assert.equal(state, 'done')
  const statusOf = (wanted: string) => checks.find(({ name }) => name === wanted)?.status
  for (const name of ['settings', 'data folder', 'database', 'blobs', 'signing key', 'TLS certificate'])
    assert.equal(statusOf(name), 'ok', name)
  assert.equal(statusOf('clamd'), 'skipped')
  assert.ok(
    checks.every(({ status, mend }) => (status === 'failed' || status === 'warning') === (mend !== null)),
  )
})

test('the numbers equal those of /metrics, without buckets', async () => {
  const { numbers } = await desk.get<{
    numbers: { name: string; values: { labels: object; value: number }[] }[]
  }>('/numbers')
  const valuesOf = (wanted: string) => numbers.find(({ name }) => name === wanted)?.values
  assert.deepEqual(valuesOf('posthorn_database_up'), [{ labels: {}, value: 1 }])
  assert.ok(valuesOf('nodejs_eventloop_lag_p99_seconds')!.length === 1)
  assert.doesNotMatch(JSON.stringify(numbers), /"le":/)
})

test('the operator lists, reads and downloads the service’s own mail and captured mail', async () => {
  type List = {
    mails: { id: string; subject: string; from: string; recipients: string[]; isUnread: boolean }[]
    isFilled: boolean
  }
  assert.deepEqual(await desk.get('/mail/kept'), { mails: [], nextCursor: null, isFilled: true })
  const raw = [
    'From: =?utf-8?q?Gr=C3=BC=C3=9Fe?= <abuse@isp.test>',
    'To: postmaster@inbox.test',
    'Subject: =?utf-8?q?Beschwerde_=C3=BCber?= 192.0.2.7',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<p>Hello <b>operator</b><script>alert(1)</script></p>',
    '',
  ].join('\r\n')
  await sendMail(node.smtp, { from: 'abuse@isp.test', to: 'postmaster@inbox.test', raw: Buffer.from(raw) })
  const { mails } = await until('the mail', async () => {
    const list = await desk.get<List>('/mail/kept')
    return list.mails.length > 0 ? list : null
  })
  const [mail] = mails
  assert.equal(mail!.isUnread, true)
  assert.deepEqual(
    [mail!.from, mail!.subject, mail!.recipients],
    ['Grüße <abuse@isp.test>', 'Beschwerde über 192.0.2.7', ['postmaster@inbox.test']],
  )
  const shown = await desk.get<{
    text: string
    hasHtml: boolean
    headers: { name: string; value: string }[]
  }>(`/mail/kept/${mail!.id}`)
  assert.equal(shown.text.trim(), 'Hello operator')
  assert.equal(shown.hasHtml, true)
  assert.deepEqual(shown.headers[1], { name: 'To', value: 'postmaster@inbox.test' })
  assert.equal((await desk.get<List>('/mail/kept')).mails[0]!.isUnread, false)
  const source = await fetch(`${desk.base}/desk/v1/mail/kept/${mail!.id}/source`, {
    headers: { cookie: desk.cookie },
  })
  assert.equal(source.headers.get('content-type'), 'message/rfc822')
  assert.match(source.headers.get('content-disposition')!, /^attachment/)
  assert.match(await source.text(), /<script>alert/)
  assert.equal((await fetch(source.url)).status, 401)

  const { api } = await node.createCaller()
  const { submission } = await send(api, await api.createInbox(), ['someone@far.test'])
  await untilStates(api, submission.id, 'delivered')
  const captured = await desk.get<List>('/mail/captured')
  assert.deepEqual(captured.mails[0]!.recipients, ['someone@far.test'])
  const one = await desk.get<{ text: string }>(`/mail/captured/${captured.mails[0]!.id}`)
  assert.ok(one.text.length > 0)
})

test('a mail that takes too long to read still shows its author, whose name cannot pass for an address', async (t) => {
  const parsePool = new ParsePool({ threads: 1, timeoutMs: 20 })
  t.after(() => parsePool.close())
  const header =
    'From: "Boss <boss@bank.test>" <evil@far.test>\r\nSubject: Slow\r\nContent-Type: multipart/mixed; boundary=bb\r\n'
  const raw = Buffer.from(`${header}\r\n${'--bx\r\n'.repeat(150_000)}`)
  await sendMail(node.smtp, { from: 'evil@far.test', to: 'postmaster@inbox.test', raw })
  const id = await until('the mail', async () => {
    const [newest] = await listOperatorMail(node.foundation, 'kept', { beforeId: null, limit: 1 })
    return newest?.subject === 'Slow' ? newest.id : null
  })
  const read = await readOperatorMail({ ...node.foundation, parsePool }, 'kept', id)
  assert.match(read.content.note ?? '', /could not be read/)
  const { from, subject } = presentWhole(read)
  assert.deepEqual([from, subject], ['"Boss <boss@bank.test>" <evil@far.test>', 'Slow'])
})

/** Sends a request with this Host, which fetch cannot set. Returns its status. */
function askAs(
  port: number,
  host: string,
  path: string,
  body?: { token: string },
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const change = { origin: `http://${host}`, 'content-type': 'application/json' }
    const options = { host: '127.0.0.1', port, path, headers: { host, ...(body && change) } }
    const asked = request({ ...options, method: body ? 'POST' : 'GET' }, async (response) => {
      const text = (await response.toArray()).join('')
      resolve({ status: response.statusCode!, text })
    })
    asked.on('error', reject).end(body && JSON.stringify(body))
  })
}

// Runs last, because it moves the clock.
test('the operator’s desk is opened, used and closed', async (t) => {
  const { db, clock } = node.foundation
  const { port } = node.app.listening.operator

  await t.test('a link opens it once, with a cookie for this host alone, and is logged', async () => {
    const { token } = await createDeskLink(node.foundation)
    const desk = deskOf(node)
    const { status, headers, body } = await desk.open(token)
    assert.equal(status, 200)
    const cookie = headers.get('set-cookie')!
    for (const part of ['__Host-posthorn-desk=', 'Path=/', 'HttpOnly', 'Secure', 'SameSite=Strict'])
      assert.ok(cookie.includes(part), `${cookie} has ${part}`)
    assert.match(cookie, /Max-Age=43200/)
    assert.doesNotMatch(cookie, /Domain/i)
    assert.equal((await desk.get('/session'))['csrfToken'], body['csrfToken'])
    assert.equal((await deskOf(node).open(token)).body['error'], 'link_expired')
    const [entry] = await db.query(`select actor, ip from audit_entry where action = 'desk.opened'`)
    assert.deepEqual(entry, { actor: 'operator', ip: '127.0.0.1' })
  })

  await t.test('the database holds neither the link nor the cookie', async () => {
    const { token } = await createDeskLink(node.foundation)
    const desk = deskOf(node)
    const stored = async () =>
      JSON.stringify(
        await db.query(`select encode(token_hash, 'escape') as h from person_token
        union all select encode(token_hash, 'escape') from session`),
      )
    assert.ok(!(await stored()).includes(token))
    await desk.open(token)
    assert.ok(!(await stored()).includes(desk.cookie.split('=')[1]!))
  })

  await t.test('an invalid or old link is refused', async () => {
    assert.equal((await deskOf(node).open('x'.repeat(43))).status, 410)
    assert.equal((await deskOf(node).open('short')).status, 410)
    const { token } = await createDeskLink(node.foundation)
    clock.advance(linkMs)
    assert.equal((await deskOf(node).open(token)).status, 410)
  })

  await t.test('a session ends after twelve hours, and when it is closed', async () => {
    const [left, closed] = [await openedDesk(node), await openedDesk(node)]
    const { status, headers } = await closed.ask('/session', { method: 'DELETE' })
    assert.equal(status, 204)
    assert.match(headers.get('set-cookie')!, /Max-Age=0/)
    assert.equal((await closed.ask('/session')).body['error'], 'session_required')
    await left.get('/organizations')
    clock.advance(deskSessionMs)
    assert.equal((await left.ask('/organizations')).status, 401)
  })

  await t.test('without a session no data is shown, and no change made', async () => {
    const desk = deskOf(node)
    for (const path of [
      '/organizations',
      '/queues',
      '/nodes',
      '/health',
      '/numbers',
      '/mail/kept',
      '/session',
    ])
      assert.equal((await desk.ask(path)).body['error'], 'session_required', path)
    assert.equal((await desk.ask('/queues/@capture/pause', { method: 'POST' })).status, 401)
    assert.equal((await desk.ask('/nothing')).body['error'], 'route_not_found')
  })

  await t.test('a change needs a page of the desk, which shows its token', async () => {
    const desk = await openedDesk(node)
    const flush = (headers: Record<string, string | null>) =>
      desk.ask('/queues/nowhere.test/flush', { method: 'POST', headers })
    assert.equal((await flush({})).status, 404)
    const wrong: Record<string, string | null>[] = [
      { origin: null },
      { origin: 'http://evil.test' },
      { origin: 'null' },
      { origin: `http://localhost:${port}` },
      { origin: desk.base.replace('http:', 'https:') },
      { 'x-posthorn-token': null },
      { 'x-posthorn-token': 'x'.repeat(desk.token.length) },
      { 'x-posthorn-token': '' },
    ]
    for (const headers of wrong)
      assert.equal((await flush(headers)).body['error'], 'wrong_origin', JSON.stringify(headers))
    const { token } = await createDeskLink(node.foundation)
    const stolen = await deskOf(node).ask('/session', {
      method: 'POST',
      body: { token },
      headers: { origin: 'http://evil.test' },
    })
    assert.equal(stolen.body['error'], 'wrong_origin')
    assert.equal((await deskOf(node).open(token)).status, 200)
  })

  await t.test(
    'a foreign name that leads here is refused, and an address and localhost are accepted',
    async () => {
      for (const host of [
        'evil.test',
        `evil.test:${port}`,
        `localhost.evil.test:${port}`,
        '127.0.0.1.evil.test',
      ])
        for (const path of ['/', '/desk/v1/session', '/assets/x.js'])
          assert.equal((await askAs(port, host, path)).status, 403, `${host} ${path}`)
      for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, '[::1]:9000', 'localhost'])
        assert.equal((await askAs(port, host, '/desk/v1/session')).status, 401, host)
      assert.equal((await askAs(port, 'evil.test', '/healthz')).status, 200)
    },
  )

  await t.test('a browser that would drop the cookie does not use up the link', async () => {
    const { token } = await createDeskLink(node.foundation)
    const { status, text } = await askAs(port, `10.0.0.5:${port}`, '/desk/v1/session', { token })
    assert.equal(status, 403)
    assert.match(text, /ssh -L/)
    assert.equal((await askAs(port, `localhost:${port}`, '/desk/v1/session', { token })).status, 200)
  })

  await t.test(
    'without built pages one line says how to build them, and the operations still work',
    async (t) => {
      const { db, clock, log, blobs } = node.foundation
      const { server, close } = createOperatorServer({
        db,
        clock,
        log,
        blobs,
        phase: () => 'serving' as const,
        blobFault: () => null,
        collectMetrics: null,
        examine: async () => {},
        parsePool: new ParsePool({ threads: 1, timeoutMs: 1_000 }),
        settings: { pagesFolder: '/nowhere', delivery: 'capture', managedDomain: 'inbox.test' },
      })
      t.after(close)
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port: other } = server.address() as AddressInfo
      const page = await askAs(other, `127.0.0.1:${other}`, '/')
      assert.equal(page.status, 503)
      assert.match(page.text, /^[^\n]*npm run build[^\n]*\n$/)
      assert.equal((await askAs(other, `127.0.0.1:${other}`, '/desk/v1/queues')).status, 401)
    },
  )

  await t.test('the probes keep their answers', async () => {
    const ask = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method })
    assert.deepEqual(await (await ask('/healthz')).json(), { status: 'alive' })
    assert.deepEqual(await (await ask('/readyz?x=1')).json(), { status: 'ready' })
    assert.match(await (await ask('/metrics')).text(), /^posthorn_database_up 1$/m)
    for (const path of ['/healthz', '/readyz', '/metrics', '/'])
      assert.deepEqual([(await ask(path, 'HEAD')).status, await (await ask(path, 'HEAD')).text()], [200, ''])
    assert.deepEqual(
      [(await ask('/healthz', 'POST')).status, (await ask('/metrics', 'DELETE')).status],
      [405, 405],
    )
  })

  await t.test('the public listener serves nothing of the desk', async () => {
    const { host, port: publicPort } = node.app.listening.http!
    const desk = await openedDesk(node)
    const headers = { cookie: desk.cookie, 'x-posthorn-token': desk.token }
    for (const path of ['/desk/v1/session', '/desk/v1/organizations', '/desk/v1/queues', '/desk.html']) {
      const { status } = await fetch(`http://${host}:${publicPort}${path}`, { headers })
      assert.equal(status, 404, path)
    }
    const me = await fetch(`http://${host}:${publicPort}/app/v1/me`, { headers })
    assert.equal(me.status, 401)
  })
})
