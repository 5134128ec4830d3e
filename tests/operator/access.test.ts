// Who gets to the operator's desk: by a link, once; from its own page; by an address of the machine; and nobody elsewhere.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createDeskLink, deskSessionMs, linkMs } from '../../src/flow/people/operator-access.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import { createOperatorServer } from '../../src/operator/server.ts'
import { deskOf, openedDesk } from '../support/desk.ts'
import { makePlace, startNode } from '../support/node.ts'

/** A request with the Host that it names, which fetch does not let one choose; its status. */
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

test('the operator’s desk', async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
  const { db, clock } = node.foundation
  const { port } = node.app.listening.operator

  await t.test(
    'a link opens it once, with a cookie that only this host gets, and is written down',
    async () => {
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
    },
  )

  await t.test('neither the link nor the cookie stands in the database', async () => {
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

  await t.test('a link that is not one, or is too old, opens nothing', async () => {
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

  await t.test('without a session nothing is shown and nothing done', async () => {
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

  await t.test('a change comes from a page of the desk, which shows its token', async () => {
    const desk = await openedDesk(node)
    const flush = (headers: Record<string, string | null>) =>
      desk.ask('/queues/@capture/flush', { method: 'POST', headers })
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

  await t.test('a name that was made to lead here is refused, an address and localhost are not', async () => {
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
  })

  await t.test('a link is not used up where the browser would not keep the cookie', async () => {
    const { token } = await createDeskLink(node.foundation)
    const { status, text } = await askAs(port, `10.0.0.5:${port}`, '/desk/v1/session', { token })
    assert.equal(status, 403)
    assert.match(text, /ssh -L/)
    assert.equal((await askAs(port, `localhost:${port}`, '/desk/v1/session', { token })).status, 200)
  })

  await t.test(
    'where the pages are not built, one line says how; the operations work all the same',
    async (t) => {
      const { db, clock, log, blobs } = node.foundation
      const { server, close } = createOperatorServer({
        db,
        clock,
        log,
        blobs,
        phase: () => 'serving' as const,
        blobFault: () => null,
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

  await t.test('the probes answer as they always did', async () => {
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

  await t.test('nothing of the desk answers on the public listener', async () => {
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
