// Every operation of the dashboard that changes something, done once: the audit log holds what was done, or this table says why not.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Action, actions } from '../../../src/flow/audit.ts'
import { linkDeveloper } from '../../../src/flow/people/sign-in-link.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { operationsOf, readDocument } from '../document.ts'
import { setFurnishedStage } from '../furnish.ts'
import { nextKey } from '../sending.ts'
import { enterAs, lastToken, password, Visitor } from './visitor.ts'

const furnisher = await setFurnishedStage({ after })
const { stage } = furnisher

type Made = { id: string }
type Step = [operation: string, recorded: Action[] | { none: string }, run: () => Promise<unknown>]

const caller = await furnisher.createCaller()
const owner = await enterAs(stage, caller)
const ada = await enterAs(stage, caller, 'member')
const grace = await enterAs(stage, caller, 'member')
const inbox = await furnisher.addInbox(caller)
const domainId = await furnisher.addProvedDomain(caller)
const { webhookId, deliveryId } = await furnisher.addWebhook(caller)
const { domain } = await owner.want<{ domain: string }>(`/domains/${domainId}`)
const authenticator = new Authenticator()
const stranger = new Visitor(stage)
const guest = new Visitor(stage)
const mail = { to: [{ email: 'someone@far.test' }], subject: 'Hello', text: 'There' }
const made: Record<string, string> = {}

const send = (path: string, body: unknown, status = 202) =>
  owner.want<{ id: string; submission: Made }>(path, {
    ...{ method: 'POST', body, status, headers: { 'idempotency-key': nextKey() } },
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

const isTheRecord = { none: 'what it makes is listed, with who made it and when' }
const changesNothing = { none: 'it changes nothing' }
const onlyMails = { none: 'it mails a link; what the link does is recorded' }

const steps: Step[] = [
  ['POST /inboxes', ['inbox.created'], async () => (made['inbox'] = (await post('/inboxes', {}, 201)).id)],
  [
    'PATCH /inboxes/{inboxId}',
    ['inbox.renamed'],
    () => change('PATCH', `/inboxes/${made['inbox']}`, { displayName: 'Calm Otter' }),
  ],
  ['DELETE /inboxes/{inboxId}', ['inbox.deleted'], () => remove(`/inboxes/${made['inbox']}`)],
  [
    'POST /inboxes/{inboxId}/messages',
    isTheRecord,
    async () => (made['submission'] = (await send(`/inboxes/${inbox.inboxId}/messages`, mail)).submission.id),
  ],
  [
    'POST /threads/{threadId}/replies',
    isTheRecord,
    () =>
      send(`/threads/${inbox.threadId}/replies`, {
        targetMessageId: inbox.sent.messageId,
        text: 'Yes',
      }),
  ],
  ['POST /send', isTheRecord, () => send('/send', { ...mail, from: { email: `a@${domain}` } })],
  [
    'POST /submissions/{submissionId}/cancel',
    ['submission.cancelled'],
    () => post(`/submissions/${made['submission']}/cancel`, undefined, 200),
  ],
  [
    'DELETE /messages/{messageId}',
    ['message.deleted'],
    () => remove(`/messages/${inbox.received.messageId}`),
  ],
  ['POST /suppressions', ['suppression.added'], () => post('/suppressions', { email: 'no@far.test' }, 201)],
  [
    'POST /suppressions/import',
    ['suppression.added'],
    () => {
      const former = { email: 'former@far.test', reason: 'complaint', note: null, createdAt: null }
      return post('/suppressions/import', former, 201)
    },
  ],
  [
    'DELETE /suppressions',
    ['suppression.removed'],
    () => change('DELETE', '/suppressions', { email: 'no@far.test' }, owner, 204),
  ],
  [
    'POST /domains',
    ['domain.registered'],
    async () => (made['domain'] = (await post('/domains', { domain: 'audited.example' }, 201)).id),
  ],
  [
    'POST /domains/{domainId}/verify',
    { none: 'it looks at DNS; the domain shows what it found' },
    () => post(`/domains/${made['domain']}/verify`, undefined, 200),
  ],
  [
    'POST /domains/{domainId}/rotate-dkim',
    ['domain.keys_rotated'],
    () => post(`/domains/${domainId}/rotate-dkim`, undefined, 200),
  ],
  ['DELETE /domains/{domainId}', ['domain.deleted'], () => remove(`/domains/${made['domain']}`)],
  ['POST /validate', changesNothing, () => post('/validate', { email: 'a@far.test' }, 200)],
  ['POST /validate/bulk', changesNothing, () => post('/validate/bulk', { emails: ['a@far.test'] }, 200)],
  [
    'POST /webhooks',
    ['webhook.created'],
    async () => (made['webhook'] = (await post('/webhooks', { url: 'https://good.example.com/' }, 201)).id),
  ],
  [
    'PATCH /webhooks/{webhookId}',
    ['webhook.changed'],
    () => change('PATCH', `/webhooks/${webhookId}`, { url: 'https://evil.example.net/' }),
  ],
  [
    'POST /webhooks/{webhookId}/rotate-secret',
    ['webhook.secret_rotated'],
    () => post(`/webhooks/${webhookId}/rotate-secret`, undefined, 200),
  ],
  [
    'POST /webhooks/{webhookId}/test',
    { none: 'it calls their own endpoint; the call is listed' },
    () => post(`/webhooks/${webhookId}/test`, undefined, 202),
  ],
  [
    'POST /webhooks/{webhookId}/deliveries/{deliveryId}/replay',
    ['webhook.call_replayed'],
    () => post(`/webhooks/${webhookId}/deliveries/${deliveryId}/replay`, undefined, 202),
  ],
  ['DELETE /webhooks/{webhookId}', ['webhook.deleted'], () => remove(`/webhooks/${made['webhook']}`)],
  [
    'POST /keys',
    ['key.created'],
    async () => {
      const { key } = await owner.want<{ key: Made }>('/keys', {
        ...{ method: 'POST', status: 201, body: { name: 'K', scopes: ['mailbox:read'] } },
      })
      made['key'] = key.id
    },
  ],
  [
    'POST /keys/{keyId}/rotate',
    ['key.rotated'],
    () => post(`/keys/${made['key']}/rotate`, { name: 'K 2' }, 201),
  ],
  ['DELETE /keys/{keyId}', ['key.revoked'], () => remove(`/keys/${made['key']}`)],
  [
    'PATCH /organization',
    ['organization.renamed'],
    () => change('PATCH', '/organization', { name: 'Quiet Fox' }),
  ],
  ['POST /invitations', ['member.invited'], () => invite('first@far.test')],
  [
    'POST /invitations/preview',
    changesNothing,
    async () =>
      await post('/invitations/preview', { token: await lastToken(stage, 'first@far.test') }, 200, guest),
  ],
  [
    'DELETE /invitations/{invitationId}',
    ['member.invitation_withdrawn'],
    () => remove(`/invitations/${made['invitation']}`),
  ],
  [
    'POST /invitations/accept',
    ['member.invited', 'member.joined', 'session.opened'],
    async () => {
      const email = await invite('second@far.test')
      await guest.enter('/invitations/accept', {
        token: await lastToken(stage, email),
        name: 'Guest',
        password,
      })
    },
  ],
  [
    'PATCH /members/{personId}',
    ['member.role_changed'],
    () => change('PATCH', `/members/${ada.session!.person.id}`, { role: 'viewer' }, owner, 204),
  ],
  ['DELETE /members/{personId}', ['member.removed'], () => remove(`/members/${grace.session!.person.id}`)],
  [
    'POST /sign-up',
    onlyMails,
    () => post('/sign-up', { email: 'new@far.test', password, name: 'New' }, 202, stranger),
  ],
  [
    'POST /confirmations',
    ['session.opened'],
    async () => await stranger.enter('/confirmations', { token: await lastToken(stage, 'new@far.test') }),
  ],
  ['POST /organizations', ['access.asked'], () => post('/organizations', { name: 'Harbor' }, 201, stranger)],
  [
    'PUT /session/organization',
    { none: 'it changes what the person looks at' },
    () => change('PUT', '/session/organization', { organizationId: caller.organizationId }),
  ],
  ['PATCH /person', ['person.renamed'], () => change('PATCH', '/person', { name: 'Ada Byron' }, ada)],
  [
    'PUT /person/password',
    ['password.changed'],
    () => change('PUT', '/person/password', { current: password, password: `${password} 2` }, guest, 204),
  ],
  [
    'POST /passkeys/registration',
    changesNothing,
    async () => (made['options'] = JSON.stringify(await post('/passkeys/registration', {}, 200))),
  ],
  [
    'POST /passkeys',
    ['passkey.added'],
    async () => {
      const response = authenticator.create(JSON.parse(made['options']!) as never, stage.base)
      made['passkey'] = (await post('/passkeys', { name: 'P', response }, 201)).id
    },
  ],
  [
    'POST /passkeys/challenge',
    changesNothing,
    async () => (made['challenge'] = JSON.stringify(await post('/passkeys/challenge', {}, 200))),
  ],
  [
    'POST /session/passkey',
    ['session.opened'],
    async () =>
      await owner.enter('/session/passkey', {
        response: authenticator.get(JSON.parse(made['challenge']!) as never, stage.base),
      }),
  ],
  ['DELETE /passkeys/{passkeyId}', ['passkey.removed'], () => remove(`/passkeys/${made['passkey']}`)],
  [
    'POST /session',
    ['session.opened'],
    () => new Visitor(stage).enter('/session', { email: owner.session!.person.email, password }),
  ],
  [
    'DELETE /sessions/{sessionId}',
    ['session.ended'],
    async () => {
      const { sessions } = await owner.want<{ sessions: { id: string; current: boolean }[] }>('/sessions')
      await remove(`/sessions/${sessions.find(({ current }) => !current)!.id}`)
    },
  ],
  ['DELETE /sessions', ['sessions.ended'], () => remove('/sessions')],
  [
    'POST /session/link',
    ['session.opened'],
    async () => {
      const token = await linkDeveloper(stage, caller.organizationId as never)
      await new Visitor(stage).enter('/session/link', { token })
    },
  ],
  ['POST /resets', onlyMails, () => post('/resets', { email: owner.session!.person.email }, 202, stranger)],
  [
    'POST /resets/preview',
    changesNothing,
    async () =>
      await post(
        '/resets/preview',
        { token: await lastToken(stage, owner.session!.person.email) },
        200,
        stranger,
      ),
  ],
  [
    'POST /resets/complete',
    // The owner's key was made since they proved their address.
    ['password.changed', 'key.revoked', 'session.opened'],
    async () => {
      const token = await lastToken(stage, owner.session!.person.email)
      await owner.enter('/resets/complete', { token, password: `${password} 3` })
    },
  ],
  ['DELETE /session', ['session.ended'], () => remove('/session', owner)],
]

async function entries(): Promise<
  Map<string, { action: string; subject: string; detail: object; actor: string }>
> {
  const rows = await stage.db.query<{
    id: string
    action: string
    subject: string
    detail: object
    actor: string
  }>('select id, action, subject, detail, actor from audit_entry order by id')
  return new Map(rows.map(({ id, ...row }) => [id, row]))
}

/** Recorded by the operator's desk and commands, and by an identity provider; their own tests show them. */
const elsewhere: Action[] = [
  ...(['organization.created', 'organization.approved', 'organization.suspended'] as const),
  ...(['organization.limits_changed', 'organization.deleted', 'identity.linked', 'desk.opened'] as const),
  ...(['queue.paused', 'queue.resumed', 'queue.flushed', 'queue.cancelled'] as const),
  ...(['secret.rotated', 'secret.replaced', 'copy.released'] as const),
]

test('the table has every action of a person or a key', () => {
  const recorded = steps.flatMap(([, recorded]) => (Array.isArray(recorded) ? recorded : []))
  assert.deepEqual([...new Set([...recorded, ...elsewhere])].sort(), [...actions].sort())
})

test('hostile 29: the table has every operation that is not a GET', async () => {
  const document = await readDocument(stage.base, '/app/openapi.json')
  const changing = operationsOf(document).filter(({ method }) => method !== 'GET')
  assert.deepEqual(
    steps.map(([operation]) => operation).sort(),
    changing.map(({ method, path }) => `${method} ${path.replace('/app/v1', '')}`).sort(),
  )
})

for (const [operation, recorded, run] of steps)
  test(`${operation} ${Array.isArray(recorded) ? `records ${recorded}` : `records nothing: ${recorded.none}`}`, async () => {
    const before = await entries()
    await run()
    const added = [...(await entries())].filter(([id]) => !before.has(id)).map(([, { action }]) => action)
    assert.deepEqual(added, Array.isArray(recorded) ? recorded : [])
  })

test('hostile 29: a webhook whose calls now go elsewhere names both addresses', async () => {
  const changed = [...(await entries()).values()].find(({ action }) => action === 'webhook.changed')
  assert.deepEqual(changed!.detail, {
    url: { from: 'https://app.example.com/hooks', to: 'https://evil.example.net/' },
  })
  assert.deepEqual([changed!.subject, changed!.actor], [webhookId, owner.session!.person.email])
})
