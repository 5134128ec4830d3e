// Tests organizations and members: requests, approval, invitations, roles, and leaving.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { PersonId } from '../../../src/base/ids.ts'
import { changeOrganizationStatus } from '../../../src/flow/accounts/organization.ts'
import type { MemberRole } from '../../../src/store/people/people.ts'
import { untilLocked } from '../../support/lock-waits.ts'
import { setStage } from '../stage.ts'
import {
  enterAs,
  enterDirectly,
  join,
  lastToken,
  lettersTo,
  openAs,
  password,
  type Session,
  Visitor,
} from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const visitor = () => new Visitor(stage)
let invited = 0

interface Members {
  members: { personId: string; email: string; role: string; lastSeenAt: string | null }[]
  invitations: { id: string; email: string; role: string }[]
}

interface Made {
  keys: { id: string; name: string }[]
  webhooks: { id: string; url: string }[]
  invitations: { email: string }[]
}

/** Creates a key, a webhook by the session, a webhook by the key and, for an owner, an invitation. */
async function make(by: Visitor) {
  const body = { name: 'Left behind', scopes: ['mailbox:read', 'webhook:manage'] }
  const { secret } = await by.want<{ secret: string }>('/keys', { method: 'POST', status: 201, body })
  const webhook = { url: 'https://app.example.com/hooks' }
  const { id } = await by.want<{ id: string }>('/webhooks', { method: 'POST', status: 201, body: webhook })
  const ofKey = await fetch(`${stage.base}/v1/webhooks`, {
    method: 'POST',
    headers: { 'x-api-key': secret, 'content-type': 'application/json' },
    body: JSON.stringify(webhook),
  })
  assert.equal(ofKey.status, 201)
  const webhookIds = [id, ((await ofKey.json()) as { id: string }).id]
  if (by.session!.organization!.role === 'owner')
    await by.want('/invitations', {
      method: 'POST',
      status: 201,
      body: { email: `late-${++invited}@far.test`, role: 'owner' },
    })
  return { secret, webhookIds }
}

/** Returns what still works, as others see it: the key's status, the webhooks' statuses, and open invitations. */
async function worksOf(owner: Visitor, { secret, webhookIds }: { secret: string; webhookIds: string[] }) {
  const { status } = await fetch(`${stage.base}/v1/inboxes`, { headers: { 'x-api-key': secret } })
  const webhooks = await Promise.all(
    webhookIds.map((id) => owner.want<{ status: string }>(`/webhooks/${id}`)),
  )
  const { invitations } = await owner.want<Members>('/members')
  return [status, webhooks.map((webhook) => webhook.status), invitations.length]
}

/** Returns an owner, and one person per role who has accepted an invitation. */
async function setTeam(...roles: string[]) {
  const caller = await stage.createCaller()
  const owner = await enterAs(stage, caller)
  const others: Visitor[] = []
  for (const role of roles) others.push(await inviteNew(owner, `${role}-${++invited}@far.test`, role))
  return { caller, owner, others }
}

/** Builds the same team with sessions opened directly, without a sign-in. This is much faster. */
async function openTeam(...roles: MemberRole[]) {
  const caller = await stage.createCaller()
  const open = (role: MemberRole) => enterDirectly(stage, caller.organizationId, role)
  return { caller, owner: await open('owner'), others: await Promise.all(roles.map(open)) }
}

async function inviteNew(owner: Visitor, email: string, role: string): Promise<Visitor> {
  await owner.want('/invitations', { method: 'POST', status: 201, body: { email, role } })
  const by = visitor()
  const token = await lastToken(stage, email)
  await by.enter('/invitations/accept', { token, name: 'Invited', password })
  return by
}

test('a request for access makes a pending organization, which is unusable until its approval', async () => {
  const ada = await enterAs(stage)
  assert.equal((await ada.call('/inboxes')).body.error, 'organization_inactive')
  const session = await ada.want<Session>('/organizations', {
    method: 'POST',
    status: 201,
    body: { name: 'Example Ltd' },
  })
  assert.deepEqual(session.organization, {
    id: session.organization!.id,
    name: 'Example Ltd',
    status: 'pending',
    role: 'owner',
    serverKeys: false,
  })
  assert.equal((await ada.call('/inboxes')).body.error, 'organization_inactive')
  const key = { name: 'Early', scopes: ['mailbox:read'] }
  assert.equal((await ada.post('/keys', key)).body.error, 'organization_inactive')
  await changeOrganizationStatus(stage, session.organization!.id, 'active')
  assert.equal((await ada.call('/inboxes')).status, 200)
  assert.equal((await ada.post('/keys', key)).status, 201)
})

test('a person has at most three pending organizations, however they request them', async () => {
  const ada = await enterAs(stage)
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, n) => ada.post('/organizations', { name: `Try ${n}` })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 201, 403, 403, 403])
})

test('only an owner renames the organization', async () => {
  const { owner, others } = await setTeam('member')
  const rename = (by: Visitor) =>
    by.call<Session>('/organization', { method: 'PATCH', body: { name: 'Renamed' } })
  assert.equal((await rename(others[0]!)).status, 403)
  assert.equal((await rename(owner)).body.organization!.name, 'Renamed')
  assert.equal((await others[0]!.want<Session>('/session')).organization!.name, 'Renamed')
})

test('an invitation is mailed, shown, and accepted once by a new person', async () => {
  const { owner, caller } = await setTeam()
  const email = 'Grace@Far.test'
  const body = { email, role: 'member' }
  const made = await owner.want<{ id: string; email: string }>('/invitations', {
    method: 'POST',
    status: 201,
    body,
  })
  assert.equal(made.email, 'grace@far.test')
  const [letter] = await lettersTo(stage, 'grace@far.test')
  assert.ok(letter!.text.includes(owner.session!.person.email))
  const token = await lastToken(stage, 'grace@far.test')
  const grace = visitor()
  assert.deepEqual((await grace.post('/invitations/preview', { token })).body, {
    organizationName: 'Test',
    email: 'grace@far.test',
    role: 'member',
    knownPerson: false,
  })
  assert.equal((await grace.post('/invitations/accept', { token })).status, 400)
  assert.equal(
    (await grace.post('/invitations/accept', { token, name: 'Grace', password: 'short' })).status,
    400,
  )
  const session = await grace.enter('/invitations/accept', { token, name: 'Grace', password })
  assert.deepEqual(
    session.organizations.map(({ id, role }) => [id, role]),
    [[caller.organizationId, 'member']],
  )
  const again = await visitor().post('/invitations/accept', { token, name: 'Grace', password })
  assert.equal(again.body.error, 'link_expired')
  assert.equal((await visitor().post('/invitations/preview', { token })).body.error, 'link_expired')
  const { members, invitations } = await owner.want<Members>('/members')
  assert.deepEqual(
    members.map(({ role }) => role),
    ['owner', 'member'],
  )
  assert.deepEqual(invitations, [])
  assert.equal((await owner.post('/invitations', body)).body.error, 'address_taken')
})

test('a person with an account accepts an invitation by password, or signed in', async () => {
  const known = visitor()
  await known.signUp('settled@far.test')
  for (const way of ['a password', 'a session']) {
    const { owner, caller } = await setTeam()
    await owner.want('/invitations', {
      method: 'POST',
      status: 201,
      body: { email: 'settled@far.test', role: 'viewer' },
    })
    const token = await lastToken(stage, 'settled@far.test')
    const preview = await visitor().want<{ knownPerson: boolean }>('/invitations/preview', {
      method: 'POST',
      body: { token },
    })
    assert.equal(preview.knownPerson, true)
    // A forwarded invitation mail gives its reader no access to the account.
    const others = visitor()
    assert.equal((await others.post('/invitations/accept', { token })).status, 401)
    const wrong = { token, name: 'Thief', password: 'not the password' }
    assert.equal((await others.post('/invitations/accept', wrong)).status, 401)
    const stranger = await enterAs(stage)
    assert.equal((await stranger.post('/invitations/accept', { token })).status, 401)
    const by = way === 'a session' ? known : visitor()
    const session = await by.enter(
      '/invitations/accept',
      way === 'a session' ? { token } : { token, password },
    )
    assert.deepEqual(
      [session.organization!.id, session.organization!.role],
      [caller.organizationId, 'viewer'],
      way,
    )
    assert.equal(session.person.name, 'Ada Lovelace')
  }
})

test('a renewed, withdrawn or week-old invitation is refused', async () => {
  const { owner } = await setTeam()
  const invite = async (email: string) => {
    await owner.want('/invitations', { method: 'POST', status: 201, body: { email, role: 'member' } })
    return await lastToken(stage, email)
  }
  const first = await invite('anew@far.test')
  const second = await invite('anew@far.test')
  assert.equal((await visitor().post('/invitations/preview', { token: first })).status, 410)
  assert.equal((await visitor().post('/invitations/preview', { token: second })).status, 200)
  const { invitations } = await owner.want<Members>('/members')
  assert.equal(invitations.length, 1)
  await owner.want(`/invitations/${invitations[0]!.id}`, { method: 'DELETE', status: 204 })
  assert.equal((await owner.call(`/invitations/${invitations[0]!.id}`, { method: 'DELETE' })).status, 404)
  assert.equal((await visitor().post('/invitations/preview', { token: second })).status, 410)
  const old = await invite('old@far.test')
  stage.clock.advance(7 * 86_400_000 + 1)
  const { status } = await visitor().post('/invitations/accept', { token: old, name: 'Old', password })
  assert.equal(status, 410)
  assert.deepEqual((await owner.want<Members>('/members')).invitations, [])
})

test('a person who signs up alone can accept their invitation afterwards', async () => {
  const { owner, caller } = await setTeam()
  await owner.want('/invitations', {
    method: 'POST',
    status: 201,
    body: { email: 'both@far.test', role: 'member' },
  })
  const token = await lastToken(stage, 'both@far.test')
  const both = visitor()
  await both.signUp('both@far.test')
  const session = await both.enter('/invitations/accept', { token })
  assert.equal(session.organization!.id, caller.organizationId)
})

test('hostile 24: a password set by another before an invitation proved the address is refused', async () => {
  const { owner } = await setTeam()
  const email = 'prepared@far.test'
  await visitor().post('/sign-up', { email, password: 'the password of the thief', name: 'Thief' })
  const planted = await lastToken(stage, email)
  const session = (await inviteNew(owner, email, 'member')).session!
  assert.equal(session.person.name, 'Invited')
  assert.equal(
    (await visitor().post('/session', { email, password: 'the password of the thief' })).status,
    401,
  )
  assert.equal((await visitor().post('/confirmations', { token: planted })).status, 410)
})

test('a viewer changes nothing, a member changes mail but no members, and an owner changes both', async () => {
  const { owner, others } = await setTeam('member', 'viewer')
  const [member, viewer] = others as [Visitor, Visitor]
  const invitation = { email: 'someone-else@far.test', role: 'owner' }
  const target = owner.session!.person.id
  const changes: [Visitor, string, object, number][] = [
    [viewer, 'POST /inboxes', {}, 403],
    [member, 'POST /inboxes', {}, 201],
    [owner, 'POST /inboxes', {}, 201],
    [viewer, 'POST /keys', { name: 'K', scopes: ['mailbox:read'] }, 403],
    [member, 'POST /keys', { name: 'K', scopes: ['mailbox:read'] }, 201],
    [viewer, 'POST /invitations', invitation, 403],
    [member, 'POST /invitations', invitation, 403],
    [viewer, `PATCH /members/${target}`, { role: 'viewer' }, 403],
    [member, `PATCH /members/${target}`, { role: 'viewer' }, 403],
    [member, `PATCH /members/${member.session!.person.id}`, { role: 'owner' }, 403],
    [viewer, `PATCH /members/${viewer.session!.person.id}`, { role: 'owner' }, 403],
    [viewer, 'PATCH /organization', { name: 'Mine' }, 403],
    [owner, 'POST /invitations', invitation, 201],
  ]
  for (const [by, operation, body, status] of changes) {
    const [method, path] = operation.split(' ') as [string, string]
    const answer = await by.call(path, { method, body })
    assert.equal(
      answer.status,
      status,
      `${by.session!.organization!.role} ${operation}: ${JSON.stringify(answer.body)}`,
    )
  }
  for (const path of [`/members/${target}`, `/members/${member.session!.person.id}`])
    assert.equal((await viewer.call(path, { method: 'DELETE' })).body.error, 'not_an_owner')
  for (const path of ['/inboxes', '/members', '/keys'])
    assert.equal((await viewer.call(path)).status, 200, path)
  assert.equal((await viewer.call('/audit')).status, 403)
  assert.equal((await member.call('/audit')).status, 200)
})

test('a role applies as soon as it is given, and ends as soon as it is taken', async () => {
  const { owner, others } = await setTeam('viewer')
  const [viewer] = others as [Visitor]
  const { id } = viewer.session!.person
  assert.equal((await viewer.post('/inboxes', {})).status, 403)
  await owner.want(`/members/${id}`, { method: 'PATCH', status: 204, body: { role: 'member' } })
  assert.equal((await viewer.post('/inboxes', {})).status, 201)
  await owner.want(`/members/${id}`, { method: 'DELETE', status: 204 })
  assert.equal((await viewer.call('/inboxes')).body.error, 'organization_inactive')
  const session = await viewer.want<Session>('/session')
  assert.deepEqual([session.organization, session.organizations], [null, []])
  assert.equal((await owner.call(`/members/${id}`, { method: 'DELETE' })).status, 404)
  const [key] = await stage.db.query<{ revoked: boolean }>(
    'select revoked_at is not null as revoked from api_key where person_id = $1',
    [id],
  )
  assert.equal(key!.revoked, true)
})

test('a removed person stays in their other organizations', async () => {
  const { owner, others } = await setTeam('member')
  const [member] = others as [Visitor]
  const own = await member.want<Session>('/organizations', {
    method: 'POST',
    status: 201,
    body: { name: 'Own' },
  })
  const { organizations } = own
  assert.equal(organizations.length, 2)
  await member.want('/session/organization', {
    method: 'PUT',
    body: { organizationId: owner.session!.organization!.id },
  })
  await member.want(`/members/${member.session!.person.id}`, { method: 'DELETE', status: 204 })
  assert.equal((await member.want<Session>('/session')).organization!.name, 'Own')
})

test('the last owner can neither leave nor give up the role, even when two leave at the same moment', async () => {
  const { owner } = await setTeam()
  const { id } = owner.session!.person
  const leave = (by: Visitor) => by.call(`/members/${by.session!.person.id}`, { method: 'DELETE' })
  assert.equal((await leave(owner)).body.error, 'last_owner')
  const demote = await owner.call(`/members/${id}`, { method: 'PATCH', body: { role: 'member' } })
  assert.equal(demote.body.error, 'last_owner')
  for (let round = 0; round < 5; round++) {
    const team = await setTeam('owner', 'owner')
    const owners = [team.owner, ...team.others]
    const answers = await Promise.all([
      leave(owners[0]!),
      owners[1]!.call(`/members/${owners[1]!.session!.person.id}`, {
        method: 'PATCH',
        body: { role: 'viewer' },
      }),
      leave(owners[2]!),
    ])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 204, 409])
    const left = await stage.db.query(`select from member where organization_id = $1 and role = 'owner'`, [
      team.caller.organizationId,
    ])
    assert.equal(left.length, 1)
  }
})

const everything = [200, ['active', 'active'], 1]
const nothing = [401, ['disabled', 'disabled'], 0]
const withoutInvitations = [200, ['active', 'active'], 0]

const ends: {
  how: string
  by: 'owner' | 'themselves'
  method: string
  query?: string
  body?: object
  left: unknown
}[] = [
  { how: 'is removed', by: 'owner', method: 'DELETE', left: nothing },
  {
    how: 'is removed and what they made is kept',
    by: 'owner',
    method: 'DELETE',
    query: '?made=keep',
    left: everything,
  },
  { how: 'leaves', by: 'themselves', method: 'DELETE', left: nothing },
  { how: 'leaves and keeps it', by: 'themselves', method: 'DELETE', query: '?made=keep', left: everything },
  { how: 'becomes a viewer', by: 'owner', method: 'PATCH', body: { role: 'viewer' }, left: nothing },
  {
    how: 'becomes a viewer and it is kept',
    by: 'owner',
    method: 'PATCH',
    body: { role: 'viewer', made: 'keep' },
    left: everything,
  },
  {
    how: 'becomes a member',
    by: 'owner',
    method: 'PATCH',
    body: { role: 'member' },
    left: withoutInvitations,
  },
]

for (const { how, by, method, query = '', body, left } of ends)
  test(`an owner made a key, webhooks and an invitation and ${how}: ${JSON.stringify(left)} stays`, async () => {
    const { owner, others } = await openTeam('owner')
    const other = others[0]!
    const { id } = other.session!.person
    const [made, own] = [await make(other), await make(owner)]
    const { invitations } = await owner.want<Members>('/members')
    const ofOwner = await owner.want<Made>(`/members/${owner.session!.person.id}/made`)
    await owner.want(`/invitations/${invitations[0]!.id}`, { method: 'DELETE', status: 204 })
    assert.equal(ofOwner.invitations[0]!.email, invitations[0]!.email)
    const list = await owner.want<Made>(`/members/${id}/made`)
    assert.deepEqual(list, await other.want(`/members/${id}/made`))
    assert.deepEqual(
      [
        list.keys.map(({ name }) => name),
        list.webhooks.map((webhook) => webhook.id),
        list.invitations.length,
      ],
      [['Left behind'], made.webhookIds, 1],
    )
    assert.deepEqual(await worksOf(owner, made), everything)
    const actor = by === 'owner' ? owner : other
    await actor.want(`/members/${id}${query}`, { method, status: 204, body })
    assert.deepEqual(await worksOf(owner, made), left)
    assert.deepEqual((await worksOf(owner, own)).slice(0, 2), everything.slice(0, 2))
  })

test('the audit log names each thing that ends with its maker, and who removed them', async () => {
  const { owner, others } = await openTeam('owner', 'member')
  for (const [index, query] of ['', '?made=keep'].entries()) {
    const { person } = others[index]!.session!
    const { webhookIds } = await make(others[index]!)
    await owner.want(`/members/${person.id}${query}`, { method: 'DELETE', status: 204 })
    const { entries } = await owner.want<{
      entries: { action: string; subject: string; actor: string; detail: object }[]
    }>('/audit')
    const removed = entries.findIndex(({ action }) => action === 'member.removed')
    const [entry, ...ended] = entries.slice(0, removed + 1).reverse()
    assert.deepEqual([entry!.subject, entry!.detail], [person.email, query ? { made: 'kept' } : {}])
    const wanted = [
      `member.invitation_withdrawn late-${invited}@far.test`,
      'key.revoked Left behind',
      ...webhookIds.map((id) => `webhook.changed ${id}`),
    ]
    assert.deepEqual(
      ended.map(({ action, subject }) => `${action} ${subject}`).sort(),
      query ? [] : wanted.sort(),
    )
    assert.ok(ended.every(({ actor }) => actor === owner.session!.person.email))
  }
})

test('a removed person’s keys and webhooks in another organization stay', async () => {
  const [{ owner, others }, elsewhere] = [await openTeam('member'), await openTeam()]
  const { id, email } = others[0]!.session!.person
  await join(stage, elsewhere.caller, { id: id as PersonId, email }, 'member')
  const member = await openAs(stage, id as PersonId)
  const organizationId = elsewhere.caller.organizationId
  await member.want('/session/organization', { method: 'PUT', body: { organizationId } })
  await member.reload()
  const made = await make(member)
  await owner.want(`/members/${id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual((await worksOf(elsewhere.owner, made)).slice(0, 2), everything.slice(0, 2))
})

test('owners list all keys and invitations, and others their own', async () => {
  const { owner, others } = await openTeam('member', 'viewer')
  const listed = async (by: Visitor, of: Visitor) =>
    (await by.call(`/members/${of.session!.person.id}/made`)).status
  for (const other of others) {
    assert.deepEqual([await listed(owner, other), await listed(other, other)], [200, 200])
    assert.equal(await listed(other, owner), 403)
  }
})

test('a person being removed can make no key, webhook or invitation, and change no member', async () => {
  const { owner, others, caller } = await openTeam('owner', 'member')
  const [other, colleague] = others as [Visitor, Visitor]
  const { secret } = await make(other)
  const url = 'https://late.example.com/hooks'
  const { keyId } = caller
  const late = await stage.db.transaction(async (tx) => {
    await tx.query('select from organization where id = $1 for update', [caller.organizationId])
    const requests = [
      other.post('/keys', { name: 'Late', scopes: ['mailbox:read'] }),
      other.post(`/keys/${keyId}/rotate`, { name: 'Late' }),
      other.post('/webhooks', { url }),
      other.post('/invitations', { email: 'too-late@far.test', role: 'owner' }),
      other.call(`/members/${colleague.session!.person.id}`, { method: 'PATCH', body: { role: 'owner' } }),
      other.call(`/members/${colleague.session!.person.id}`, { method: 'DELETE' }),
      fetch(`${stage.base}/v1/webhooks`, {
        method: 'POST',
        headers: { 'x-api-key': secret, 'content-type': 'application/json' },
        body: JSON.stringify({ url }),
      }),
    ]
    await untilLocked(stage.db, { count: requests.length, saying: 'organization' })
    await tx.query('delete from member where person_id = $1', [other.session!.person.id])
    await tx.query('update api_key set revoked_at = now() where person_id = $1 or made_by = $1', [
      other.session!.person.id,
    ])
    return requests
  })
  const answers = await Promise.all(late)
  assert.deepEqual(
    answers.map(({ status }) => status),
    [403, 403, 403, 403, 403, 403, 403],
  )
  const { keys } = await owner.want<{ keys: { name: string }[] }>('/keys')
  assert.ok(!keys.some(({ name }) => name === 'Late'))
})
