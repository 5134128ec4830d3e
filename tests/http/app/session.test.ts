// Tests sessions: their cookie, the origins that may change data, their organization, and how they end.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { newUuid, type OrganizationId, type PersonId } from '../../../src/base/ids.ts'
import { addMember } from '../../../src/flow/people/sessions.ts'
import { linkDeveloper } from '../../../src/flow/people/sign-in-link.ts'
import { insertPerson, type MemberRole } from '../../../src/store/people/people.ts'
import { Browser } from '../../support/browser-session.ts'
import { until } from '../../support/until.ts'
import { setStage } from '../stage.ts'

test('check 69a: a link signs in once, with a new cookie of this host that scripts cannot read', async (t) => {
  const stage = await setStage(t)
  const { organizationId } = await stage.createCaller()
  const token = await linkDeveloper(stage, organizationId as OrganizationId)
  const browser = new Browser(stage.base)
  browser.plant('__Host-posthorn', 'A'.repeat(43))
  const signedIn = await browser.signIn(token)
  assert.equal(signedIn.organization?.id, organizationId)
  assert.match(
    browser.lastCookie,
    /^__Host-posthorn=[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  assert.notEqual(browser.cookie('__Host-posthorn'), 'A'.repeat(43), 'a planted one stands for nobody')
  const again = await new Browser(stage.base).ask('POST', '/app/v1/session/link', { token })
  assert.deepEqual([again.status, again.body.error], [410, 'link_expired'])
})

test('check 69a: a change needs the page’s own origin and token, and the API accepts no cookie', async (t) => {
  const stage = await setStage(t)
  const { organizationId } = await stage.createCaller()
  const browser = new Browser(stage.base)
  const { csrfToken } = await browser.signIn(await linkDeveloper(stage, organizationId as OrganizationId))
  const create = (headers: Record<string, string>) =>
    browser.ask('POST', '/app/v1/inboxes', {}, { origin: '', 'x-posthorn-token': '', ...headers })
  for (const headers of [
    {},
    { origin: 'https://evil.test', 'x-posthorn-token': csrfToken },
    { origin: 'null', 'x-posthorn-token': csrfToken },
    { origin: stage.base },
    { origin: stage.base, 'x-posthorn-token': 'x'.repeat(43) },
  ] as Record<string, string>[]) {
    const { status, body } = await create(headers)
    assert.deepEqual([status, body.error], [403, 'wrong_origin'], JSON.stringify(headers))
  }
  assert.equal((await create({ origin: stage.base, 'x-posthorn-token': csrfToken })).status, 201)
  assert.equal((await browser.ask('GET', '/v1/me')).status, 401)
})

test('a new sign-in ends the browser’s former session', async (t) => {
  const stage = await setStage(t)
  const { organizationId } = await stage.createCaller()
  const browser = new Browser(stage.base)
  await browser.signIn(await linkDeveloper(stage, organizationId as OrganizationId))
  const former = browser.cookie('__Host-posthorn')!
  await browser.signIn(await linkDeveloper(stage, organizationId as OrganizationId))
  const other = new Browser(stage.base)
  other.plant('__Host-posthorn', former)
  await until(
    'the end of the former session',
    async () => (await other.ask('GET', '/app/v1/me')).status === 401,
  )
  assert.equal((await browser.ask('GET', '/app/v1/me')).status, 200)
})

test('over plain HTTP from elsewhere sign-in is refused, and the link stays valid', async (t) => {
  const stage = await setStage(t)
  const { organizationId } = await stage.createCaller()
  const token = await linkDeveloper(stage, organizationId as OrganizationId)
  const body = JSON.stringify({ token })
  const { status, body: refused } = await askFor(stage.port, 'mail.example.com', body)
  assert.deepEqual([status, refused.error], [403, 'wrong_origin'])
  await new Browser(stage.base).signIn(token)
})

test('the dashboard’s own operations count against the member’s minute', async (t) => {
  const stage = await setStage(t)
  const { organizationId } = await stage.createCaller({ limits: { requestsPerMinute: 4 } })
  const owner = await member(stage, organizationId as OrganizationId, 'owner')
  const statuses = []
  for (let i = 0; i < 5; i++) statuses.push((await owner.ask('GET', '/app/v1/sessions')).status)
  // A new minute of the clock may begin in between.
  assert.ok(statuses.includes(429) || (await owner.ask('GET', '/app/v1/sessions')).status === 429)
})

test('an ended session is refused, here and in another browser', async (t) => {
  const stage = await setStage(t)
  const { organizationId } = await stage.createCaller()
  const [first, second] = [new Browser(stage.base), new Browser(stage.base)]
  await first.signIn(await linkDeveloper(stage, organizationId as OrganizationId))
  await second.signIn(await linkDeveloper(stage, organizationId as OrganizationId))
  const { body } = await first.ask('GET', '/app/v1/sessions')
  assert.equal(body.sessions.length, 2)
  assert.equal((await first.ask('DELETE', '/app/v1/sessions')).status, 204)
  assert.equal((await second.ask('GET', '/app/v1/me')).status, 401)
  assert.equal((await first.ask('DELETE', '/app/v1/session')).status, 204)
  assert.equal((await first.ask('GET', '/app/v1/session')).status, 204)
  const after = await first.ask('GET', '/app/v1/me')
  assert.deepEqual([after.status, after.body.error], [401, 'session_required'])
})

test('a viewer reads and changes nothing, and no person reaches a foreign organization', async (t) => {
  const stage = await setStage(t)
  const [own, other] = [await stage.createCaller(), await stage.createCaller()]
  const theirs = await other.api.createInbox()
  const viewer = await member(stage, own.organizationId as OrganizationId, 'viewer')
  assert.equal((await viewer.ask('GET', '/app/v1/inboxes')).status, 200)
  const refused = await viewer.ask('POST', '/app/v1/inboxes', {})
  assert.deepEqual([refused.status, refused.body.error], [403, 'insufficient_scope'])
  assert.equal((await viewer.ask('GET', `/app/v1/inboxes/${theirs.id}`)).status, 404)
  const switched = await viewer.ask('PUT', '/app/v1/session/organization', {
    organizationId: other.organizationId,
  })
  assert.equal(switched.status, 404)
})

test('a message’s HTML comes without active content, and the limits show their use', async (t) => {
  const stage = await setStage(t)
  const { organizationId, api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const html = '<p onclick="x()">hello<script>x()</script><img src="https://far.test/p.png"></p>'
  const header = 'From: a@far.test\nTo: b@inbox.test\nSubject: s\nMIME-Version: 1.0\nContent-Type: text/html'
  await stage.receive(inbox.address, `${header}\n\n${html}\n`)
  const [message] = await api.exported(inbox.id)
  const owner = await member(stage, organizationId as OrganizationId, 'owner')
  const { body } = await owner.ask('GET', `/app/v1/messages/${message!.id}/page`)
  assert.equal(body.html.trim(), '<p>hello<img data-remote-src="https://far.test/p.png" /></p>')
  assert.equal(body.remoteImages, 1)
  const usage = await owner.ask('GET', '/app/v1/usage')
  const { inboxes, receivedMessagesPerDay, receivedBytesPerDay, storedBytes } = usage.body.used
  assert.deepEqual([inboxes, receivedMessagesPerDay], [1, 1])
  assert.ok(storedBytes > header.length && storedBytes === receivedBytesPerDay)
})

async function member(
  stage: Awaited<ReturnType<typeof setStage>>,
  organizationId: OrganizationId,
  role: MemberRole,
): Promise<Browser> {
  const id = newUuid<PersonId>()
  const at = stage.clock.now()
  const email = `${role}-${id}@people.test`
  await stage.db.transaction(async (tx) => {
    await insertPerson(tx, { id, email, name: role, passwordHash: null, confirmedAt: at, createdAt: at })
    await addMember(tx, { organizationId, personId: id, email, role, at })
  })
  return await Browser.of(stage, id)
}

/** Signs in under another host name, as a browser elsewhere would. */
async function askFor(
  port: number,
  host: string,
  body: string,
): Promise<{ status: number; body: { error: string } }> {
  const headers = { host, origin: `http://${host}`, 'content-type': 'application/json' }
  const asked = request({ host: '127.0.0.1', port, method: 'POST', path: '/app/v1/session/link', headers })
  asked.end(body)
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  const chunks = await answer.toArray()
  return { status: answer.statusCode!, body: JSON.parse(Buffer.concat(chunks).toString()) }
}
