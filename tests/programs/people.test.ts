// The whole story of a person, over a real service: sign-up by a delivered mail, access, approval, a key, 30 days.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deleteOrganization } from '../../src/flow/accounts/delete-organization.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import { ownOrganizationId } from '../../src/flow/own-organization.ts'
import { password, type Session, Visitor } from '../http/app/visitor.ts'
import { Api, type Inbox } from '../support/api.ts'
import { findLeftovers } from '../support/leftovers.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

/** The mails of the inbox, oldest first, once there are `count`. */
async function received(api: Api, inbox: Inbox, count: number) {
  return await until('the letter', async () => {
    const found = await api.exported(inbox.id)
    return found.length >= count ? found : null
  })
}

/** The secret in the newest mail's link. */
async function receivedToken(
  api: Api,
  inbox: Inbox,
  count: number,
): Promise<{ token: string; link: string }> {
  const messages = await received(api, inbox, count)
  const { text, from } = messages.at(-1)!
  assert.equal(from.email.split('@')[0], 'accounts')
  const link = /^(http\S+#\S+)$/m.exec(text)![1]!
  return { link, token: link.split('#')[1]! }
}

test('a person gets from sign-up to a first call with a key by mail that this service delivers', async (t) => {
  const posthorn = await startPosthorn(t, {
    env: {
      POSTHORN_MAIL_HOST: '',
      POSTHORN_OPERATOR_MAIL: 'chief@inbox.localhost',
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox('ada')
  const chief = await api.createInbox('chief')
  assert.equal(chief.address, 'chief@inbox.localhost')
  const ada = new Visitor({ base: posthorn.http } as never)
  const signUp = { email: inbox.address, password, name: 'Ada Lovelace' }
  await ada.want('/sign-up', { method: 'POST', status: 202, body: signUp })
  const { link, token } = await receivedToken(api, inbox, 1)
  assert.ok(link.startsWith(`${posthorn.http}/confirm#`), link)
  await ada.enter('/confirmations', { token })
  const pending = await ada.want<Session>('/organizations', {
    method: 'POST',
    status: 201,
    body: { name: 'Analytical Engines' },
  })
  const { id } = pending.organization!
  const key = { name: 'First', scopes: ['mailbox:manage', 'mailbox:read', 'mailbox:send'] }
  assert.equal((await ada.post('/keys', key)).body.error, 'organization_inactive')
  const [request] = await received(api, chief, 1)
  assert.equal(request!.subject, 'An organization asks for access')
  assert.match(request!.text, /^Somebody asks for access.*\n\nhttp:\/\/127\.0\.0\.1:\d+\/#\/approvals\n/)
  for (const shown of ['Analytical Engines', inbox.address, id]) assert.ok(request!.text.includes(shown))
  await posthorn.cli(['org', 'approve', id])
  const [, approval] = await received(api, inbox, 2)
  assert.equal(approval!.subject, 'Your organization is approved')
  assert.ok(approval!.text.includes(`\n\n${posthorn.http}\n\n`), approval!.text)
  assert.equal((await ada.want<Session>('/session')).organization!.status, 'active')
  const made = await ada.want<{ secret: string }>('/keys', { method: 'POST', status: 201, body: key })
  const own = new Api(() => posthorn.http, made.secret)
  const opened = await own.createInbox('engines')
  assert.equal(opened.address.split('@')[0], 'engines')
  const { entries } = await ada.want<{ entries: { actor: string; action: string }[] }>('/audit')
  assert.deepEqual(
    entries.map(({ actor, action }) => [actor, action]),
    [
      ['First (key)', 'inbox.created'],
      [inbox.address, 'key.created'],
      ['operator', 'organization.approved'],
      [inbox.address, 'access.asked'],
    ],
  )
  await ada.want('/resets', { method: 'POST', status: 202, body: { email: inbox.address } })
  const reset = await receivedToken(api, inbox, 3)
  // Several rounds of mails have passed.
  assert.equal((await api.exported(chief.id)).length, 1)
  assert.ok(reset.link.startsWith(`${posthorn.http}/reset#`))
  const log = posthorn.log()
  for (const secret of [password, token, reset.token, made.secret]) assert.ok(!log.includes(secret))
  const receiver = await startReceiver(t)
  const hook = (path: string) =>
    ada.want<{ id: string }>('/webhooks', {
      method: 'POST',
      status: 201,
      body: { url: receiver.url(path) },
    })
  const [kept] = [await hook('/kept'), await hook('/removed')]
  await ada.enter('/resets/complete', { token: reset.token, password: `${password} 2`, keep: [kept.id] })
  assert.equal((await own.call('/v1/inboxes')).status, 401)
  await ada.want('/inboxes', { method: 'POST', status: 201, body: { localPart: 'later' } })
  await send(api, inbox, ['later@inbox.localhost'])
  await until('the event', () => receiver.callsOf('/kept').length > 0)
  assert.deepEqual(receiver.callsOf('/removed'), [])
})

test('two nodes that write their first letter together make one organization and one inbox for it', async (t) => {
  const place = await makePlace(t)
  const nodes = [await startNode(place), await startNode(place)]
  const visitors = nodes.map(({ app: { listening } }) => {
    const { host, port } = listening.http!
    return new Visitor({ base: `http://${host}:${port}` } as never)
  })
  await Promise.all(
    visitors.map((by, n) =>
      by.want('/resets', { method: 'POST', status: 202, body: { email: `nobody-${n}@inbox.test` } }),
    ),
  )
  const { db } = nodes[0]!.foundation
  const inboxes = await db.query(`select local_part from inbox where organization_id = $1`, [
    ownOrganizationId,
  ])
  assert.deepEqual(inboxes, [{ local_part: 'accounts' }])
})

test('letters do not use an address that a customer had opened before', async (t) => {
  const node = await startNode(await makePlace(t))
  const { db } = node.foundation
  const { api } = await node.createCaller()
  const inbox = await api.createInbox('former-accounts')
  await db.query(`update inbox set local_part = 'accounts' where id = $1`, [inbox.id])
  const { host, port } = node.app.listening.http!
  const visitor = new Visitor({ base: `http://${host}:${port}`, db })
  const body = { email: 'somebody@inbox.test', password, name: 'S' }
  await visitor.want('/sign-up', { method: 'POST', status: 202, body })
  assert.deepEqual(await api.exported(inbox.id), [])
  const senders = await db.query(`select sender->>'email' as email from message where direction = 'outbound'`)
  assert.deepEqual(senders, [{ email: 'posthorn-accounts@inbox.test' }])
})

test('an organization is deleted with its members, invitations and audit log, and its people stay', async (t) => {
  const node = await startNode(await makePlace(t))
  const { db } = node.foundation
  const { host, port } = node.app.listening.http!
  const ada = new Visitor({ base: `http://${host}:${port}`, db })
  await ada.signUp('ada@inbox.test')
  const session = await ada.want<Session>('/organizations', {
    method: 'POST',
    status: 201,
    body: { name: 'Gone' },
  })
  const { id } = session.organization!
  await changeOrganizationStatus(node.foundation, id, 'active')
  await ada.want('/invitations', {
    method: 'POST',
    status: 201,
    body: { email: 'b@inbox.test', role: 'member' },
  })
  await deleteOrganization(node.foundation, id, () => {})
  const left = await ada.want<Session>('/session')
  assert.deepEqual([left.organization, left.organizations], [null, []])
  for (const table of ['member', 'invitation', 'api_key'])
    assert.deepEqual(await db.query(`select from ${table} where organization_id = $1`, [id]), [], table)
  const deeds = await db.query(
    `select organization_id, action, subject from audit_entry where subject = $1`,
    [id],
  )
  assert.deepEqual(deeds, [{ organization_id: null, action: 'organization.deleted', subject: id }])
  assert.deepEqual(await findLeftovers(db), [])
  await assert.rejects(
    deleteOrganization(node.foundation, ownOrganizationId, () => {}),
    /cannot be deleted/,
  )
})
