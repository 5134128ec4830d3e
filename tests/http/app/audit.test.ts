// Runs every dashboard operation once and expects the audit log entries that tests/support/operations.ts lists.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Action, actions } from '../../../src/flow/audit.ts'
import { linkDeveloper } from '../../../src/flow/people/sign-in-link.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { actionsOf, assertRecorded, rowOf, rows } from '../../support/operations.ts'
import { operationsOf, type PlacedOperation, readDocument } from '../document.ts'
import { setFurnishedStage } from '../furnish.ts'
import { nextKey } from '../sending.ts'
import { enterAs, lastToken, password, Visitor } from './visitor.ts'

const furnisher = await setFurnishedStage({ after })
const { stage } = furnisher
const operations = operationsOf(await readDocument(stage.base, '/app/openapi.json'))

type Made = { id: string }

const caller = await furnisher.createCaller()
const owner = await enterAs(stage, caller)
const ada = await enterAs(stage, caller, 'member')
const grace = await enterAs(stage, caller, 'member')
const inbox = await furnisher.addInbox(caller)
const domainId = await furnisher.addProvedDomain(caller)
await stage.receive(
  inbox.address,
  'From: a@far.test\nSubject: HTML\nContent-Type: text/html\n\n<p>There</p>\n',
)
const htmlMessage = (await caller.api.exported(inbox.inboxId)).find(({ subject }) => subject === 'HTML')
const { webhookId, deliveryId } = await furnisher.addWebhook(caller)
const { domain } = await owner.want<{ domain: string }>(`/domains/${domainId}`)
const authenticator = new Authenticator()
const stranger = new Visitor(stage)
const guest = new Visitor(stage)
const mail = { to: [{ email: 'someone@far.test' }], subject: 'Hello', text: 'There' }
const made: Record<string, string> = {}

const send = (path: string, body: unknown, status = 202) =>
  owner.want<{ id: string; submission: Made }>(path, {
    method: 'POST',
    body,
    status,
    headers: { 'idempotency-key': nextKey() },
  })
const post = async (path: string, body: unknown, status: number, by = owner) =>
  await by.want<Made>(path, { method: 'POST', body, status })
const change = (method: string, path: string, body: unknown, by = owner, status = 200) =>
  by.want(path, { method, body, status })
const remove = (path: string, by = owner) => by.want(path, { method: 'DELETE', status: 204 })

async function invite(email: string): Promise<string> {
  made['invitation'] = (await post('/invitations', { email, role: 'viewer' }, 201)).id
  return email
}

// Runs before the steps, because one of the steps accepts the invitation.
const invited = await invite('second@far.test')

/** The order matters: some steps use results of earlier steps. */
const steps: Record<string, () => Promise<unknown>> = {
  'POST /inboxes': async () => (made['inbox'] = (await post('/inboxes', {}, 201)).id),
  'PATCH /inboxes/{inboxId}': () =>
    change('PATCH', `/inboxes/${made['inbox']}`, { displayName: 'Calm Otter' }),
  'DELETE /inboxes/{inboxId}': () => remove(`/inboxes/${made['inbox']}`),
  'POST /inboxes/{inboxId}/messages': async () =>
    (made['submission'] = (await send(`/inboxes/${inbox.inboxId}/messages`, mail)).submission.id),
  'POST /threads/{threadId}/replies': () =>
    send(`/threads/${inbox.threadId}/replies`, {
      targetMessageId: inbox.sent.messageId,
      text: 'Yes',
    }),
  'POST /send': () => send('/send', { ...mail, from: { email: `a@${domain}` } }),
  'POST /submissions/{submissionId}/cancel': () =>
    post(`/submissions/${made['submission']}/cancel`, undefined, 200),
  'DELETE /captured': () => remove('/captured'),
  'DELETE /messages/{messageId}': () => remove(`/messages/${inbox.received.messageId}`),
  'POST /suppressions': () => post('/suppressions', { email: 'no@far.test' }, 201),
  'POST /suppressions/import': () => {
    const former = { email: 'former@far.test', reason: 'complaint', note: null, createdAt: null }
    return post('/suppressions/import', former, 201)
  },
  'DELETE /suppressions': () => change('DELETE', '/suppressions', { email: 'no@far.test' }, owner, 204),
  'POST /domains': async () =>
    (made['domain'] = (await post('/domains', { domain: 'audited.example' }, 201)).id),
  'POST /domains/{domainId}/verify': () => post(`/domains/${made['domain']}/verify`, undefined, 200),
  'POST /domains/{domainId}/rotate-dkim': () => post(`/domains/${domainId}/rotate-dkim`, undefined, 200),
  'DELETE /domains/{domainId}': () => remove(`/domains/${made['domain']}`),
  'POST /validate': () => post('/validate', { email: 'a@far.test' }, 200),
  'POST /validate/bulk': () => post('/validate/bulk', { emails: ['a@far.test'] }, 200),
  'POST /webhooks': async () =>
    (made['webhook'] = (await post('/webhooks', { url: 'https://good.example.com/' }, 201)).id),
  'PATCH /webhooks/{webhookId}': () =>
    change('PATCH', `/webhooks/${webhookId}`, { url: 'https://evil.example.net/' }),
  'POST /webhooks/{webhookId}/rotate-secret': () =>
    post(`/webhooks/${webhookId}/rotate-secret`, undefined, 200),
  'POST /webhooks/{webhookId}/test': () => post(`/webhooks/${webhookId}/test`, undefined, 202),
  'POST /webhooks/{webhookId}/deliveries/{deliveryId}/replay': () =>
    post(`/webhooks/${webhookId}/deliveries/${deliveryId}/replay`, undefined, 202),
  'DELETE /webhooks/{webhookId}': () => remove(`/webhooks/${made['webhook']}`),
  'POST /keys': async () => {
    const { key } = await owner.want<{ key: Made }>('/keys', {
      method: 'POST',
      status: 201,
      body: { name: 'K', scopes: ['mailbox:read'] },
    })
    made['key'] = key.id
  },
  'POST /keys/{keyId}/rotate': () => post(`/keys/${made['key']}/rotate`, { name: 'K 2' }, 201),
  'DELETE /keys/{keyId}': () => remove(`/keys/${made['key']}`),
  'PATCH /organization': () => change('PATCH', '/organization', { name: 'Quiet Fox' }),
  'POST /invitations': () => invite('first@far.test'),
  'POST /invitations/preview': async () =>
    await post('/invitations/preview', { token: await lastToken(stage, 'first@far.test') }, 200, guest),
  'DELETE /invitations/{invitationId}': () => remove(`/invitations/${made['invitation']}`),
  'POST /invitations/accept': async () => {
    await guest.enter('/invitations/accept', {
      token: await lastToken(stage, invited),
      name: 'Guest',
      password,
    })
  },
  'PATCH /members/{personId}': () =>
    change('PATCH', `/members/${ada.session!.person.id}`, { role: 'viewer' }, owner, 204),
  'DELETE /members/{personId}': () => remove(`/members/${grace.session!.person.id}`),
  'POST /sign-up': () => post('/sign-up', { email: 'new@far.test', password, name: 'New' }, 202, stranger),
  'POST /confirmations': async () =>
    await stranger.enter('/confirmations', { token: await lastToken(stage, 'new@far.test') }),
  'POST /organizations': () => post('/organizations', { name: 'Harbor' }, 201, stranger),
  'PUT /session/organization': () =>
    change('PUT', '/session/organization', { organizationId: caller.organizationId }),
  'PATCH /person': () => change('PATCH', '/person', { name: 'Ada Byron' }, ada),
  'PUT /person/password': () =>
    change('PUT', '/person/password', { current: password, password: `${password} 2` }, guest, 204),
  'POST /passkeys/registration': async () =>
    (made['options'] = JSON.stringify(await post('/passkeys/registration', {}, 200))),
  'POST /passkeys': async () => {
    const response = authenticator.create(JSON.parse(made['options']!) as never, stage.base)
    made['passkey'] = (await post('/passkeys', { name: 'P', response }, 201)).id
  },
  'POST /passkeys/challenge': async () =>
    (made['challenge'] = JSON.stringify(await post('/passkeys/challenge', {}, 200))),
  'POST /session/passkey': async () =>
    await owner.enter('/session/passkey', {
      response: authenticator.get(JSON.parse(made['challenge']!) as never, stage.base),
    }),
  'DELETE /passkeys/{passkeyId}': () => remove(`/passkeys/${made['passkey']}`),
  'POST /session': () =>
    new Visitor(stage).enter('/session', { email: owner.session!.person.email, password }),
  'DELETE /sessions/{sessionId}': async () => {
    const { sessions } = await owner.want<{ sessions: { id: string; current: boolean }[] }>('/sessions')
    await remove(`/sessions/${sessions.find(({ current }) => !current)!.id}`)
  },
  'DELETE /sessions': () => remove('/sessions'),
  'POST /session/link': async () => {
    const token = await linkDeveloper(stage, caller.organizationId as never)
    await new Visitor(stage).enter('/session/link', { token })
  },
  'POST /resets': () => post('/resets', { email: owner.session!.person.email }, 202, stranger),
  'POST /resets/preview': async () =>
    await post(
      '/resets/preview',
      { token: await lastToken(stage, owner.session!.person.email) },
      200,
      stranger,
    ),
  'POST /resets/complete': async () => {
    const token = await lastToken(stage, owner.session!.person.email)
    await owner.enter('/resets/complete', { token, password: `${password} 3` })
  },
  'DELETE /session': () => remove('/session', owner),
}

/** Operator commands and an identity provider cause these actions. Their own tests cover them. */
const elsewhere: Action[] = [
  'organization.created',
  'identity.linked',
  'secret.rotated',
  'secret.replaced',
  'copy.released',
  'domain.one_click_changed',
]

test('the table of operations has every other action', () => {
  assert.deepEqual([...new Set([...rows.flatMap(actionsOf), ...elsewhere])].sort(), [...actions].sort())
})

const named = Object.entries(steps).map(([name, run]) => ({ name: name.replace(' ', ' /app/v1'), run }))

test('hostile 29: the steps have every operation that is not a GET', () => {
  const changing = operations.filter(({ method }) => method !== 'GET')
  assert.deepEqual(
    named.map(({ name }) => name).sort(),
    changing.map(({ method, path }) => `${method} ${path}`).sort(),
  )
})

/** The skipped reads cannot run here: the stage delivers nothing, so it captures nothing, and the stream never ends. */
const isRead = ({ method, path }: PlacedOperation) =>
  method === 'GET' && !path.includes('{capturedId}') && path !== '/app/v1/events'

for (const { method, path } of operations.filter(isRead))
  test(`${method} ${path} records nothing`, async () => {
    const ids: Record<string, string> = {
      inboxId: inbox.inboxId,
      threadId: inbox.threadId,
      messageId: path.endsWith('/page') ? htmlMessage!.id : inbox.received.messageId,
      attachmentId: inbox.received.attachmentId,
      submissionId: inbox.sent.submissionId,
      domainId,
      webhookId,
      personId: owner.session!.person.id,
    }
    const place = path.replace('/app/v1', '').replace(/\{(\w+)\}/g, (_, name: string) => ids[name]!)
    await assertRecorded(stage.db, `${method} ${path}`, () => owner.want(place))
  })

for (const { name, run } of named) {
  const { recorded } = rowOf(name)
  const entries = 'none' in recorded ? `nothing: ${recorded.none}` : recorded.join(', ')
  test(`${name} records ${entries}`, async () => {
    await assertRecorded(stage.db, name, run)
  })
}

test('hostile 29: a changed webhook address is logged with both addresses', async () => {
  const [changed] = await stage.db.query<{ subject: string; detail: object; actor: string }>(
    `select subject, detail, actor from audit_entry where action = 'webhook.changed' order by id`,
  )
  assert.deepEqual(changed!.detail, {
    url: { from: 'https://app.example.com/hooks', to: 'https://evil.example.net/' },
  })
  assert.deepEqual([changed!.subject, changed!.actor], [webhookId, owner.session!.person.email])
})
