// Tests API keys in the dashboard: the secret is shown once, restrictions, expiry, and the audit log entries.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { changeLimits } from '../../../src/flow/accounts/organization.ts'
import { addKey } from '../../support/agent-key.ts'
import type { Inbox } from '../../support/api.ts'
import { type Caller, setStage } from '../stage.ts'
import { enterAs, type Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })

interface Key {
  id: string
  name: string
  kind: string
  scopes: string[]
  expiresAt: string
  createdAt: string
  revokedAt: string | null
  lastUsedAt: string | null
  madeBy: { name: string; email: string } | null
  requestsPerMinute: number
  inboxIds: string[] | null
  allowedIps: string[] | null
}

interface Made {
  key: Key
  secret: string
}

const dayMs = 86_400_000

async function setUp(): Promise<{ caller: Caller; owner: Visitor }> {
  const caller = await stage.createCaller()
  return { caller, owner: await enterAs(stage, caller) }
}

function make(by: Visitor, body: object): Promise<Made> {
  return by.want<Made>('/keys', { method: 'POST', status: 201, body: { name: 'Booking', ...body } })
}

/** Calls the API with a key. */
async function use(secret: string, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(stage.base + path, { headers: { 'x-api-key': secret, ...headers } })
  return { status: response.status, body: (await response.json()) as { error?: string } }
}

test('a key works at once, is listed with its last use, without its secret, and ends after 30 days', async () => {
  const { owner } = await setUp()
  const { key, secret } = await make(owner, { scopes: ['mailbox:read', 'mailbox:manage'] })
  assert.match(secret, /^ph_[0-9A-Za-z]{49}$/)
  assert.equal(Date.parse(key.expiresAt) - Date.parse(key.createdAt), 30 * dayMs)
  assert.equal((await use(secret, '/v1/inboxes')).status, 200)
  assert.equal((await use(secret, '/v1/domains')).body.error, 'insufficient_scope')
  const text = JSON.stringify(await owner.want('/keys'))
  assert.ok(!text.includes(secret) && !text.includes(owner.session!.person.id))
  const { keys } = await owner.want<{ keys: Key[] }>('/keys')
  // The list includes the stage's key, which the operator made. It excludes the members' keys.
  assert.deepEqual(
    keys.map(({ name, kind }) => [name, kind]),
    [
      ['Booking', 'dashboard'],
      ['test', 'agent'],
    ],
  )
  assert.ok(Date.parse(keys[0]!.lastUsedAt!) > Date.parse(key.createdAt) - 60_000)
  assert.equal(keys[1]!.lastUsedAt, null)
  stage.clock.advance(30 * dayMs - 60_000)
  assert.equal((await use(secret, '/v1/inboxes')).status, 200)
  stage.clock.advance(61_000)
  assert.equal((await use(secret, '/v1/inboxes')).body.error, 'unauthorized')
})

test('a key lasts from one to 30 days', async () => {
  const { owner } = await setUp()
  const { key } = await make(owner, { scopes: ['mailbox:read'], expiresInDays: 1 })
  assert.equal(Date.parse(key.expiresAt) - Date.parse(key.createdAt), dayMs)
  for (const expiresInDays of [0, 31, -1, 1.5, null])
    assert.equal(
      (await owner.post('/keys', { name: 'K', scopes: ['mailbox:read'], expiresInDays })).status,
      400,
    )
})

test('a key may have only the dashboard’s scopes', async () => {
  const { owner } = await setUp()
  for (const scopes of [
    ['*'],
    ['delivery:send'],
    ['validation:use'],
    ['mailbox:read', 'mailbox:read'],
    [],
    undefined,
  ])
    assert.equal((await owner.post('/keys', { name: 'K', scopes })).status, 400, JSON.stringify(scopes))
  for (const name of ['', ' ', 'K\n', 'K\u001b[2J'])
    assert.equal((await owner.post('/keys', { name, scopes: ['mailbox:read'] })).status, 400, name)
})

test('a key’s restrictions apply, and must belong to its organization', async () => {
  const [{ owner, caller }, other] = [await setUp(), await setUp()]
  const mine = await caller.api.createInbox()
  const second = await caller.api.createInbox()
  const theirs = await other.caller.api.createInbox()
  const scopes = ['mailbox:read', 'mailbox:send']
  const { secret } = await make(owner, { scopes, inboxIds: [mine.id] })
  const seen = await fetch(`${stage.base}/v1/inboxes`, { headers: { 'x-api-key': secret } })
  assert.deepEqual(
    ((await seen.json()) as { inboxes: Inbox[] }).inboxes.map(({ id }) => id),
    [mine.id],
  )
  assert.equal((await use(secret, `/v1/inboxes/${second.id}/messages`)).body.error, 'inbox_not_allowed')
  const foreign = await owner.post('/keys', { name: 'K', scopes, inboxIds: [theirs.id] })
  const nobodys = await owner.post('/keys', { name: 'K', scopes, inboxIds: [`inb_${'0'.repeat(24)}`] })
  assert.deepEqual([foreign.status, nobodys.status], [404, 404])
  const fromOne = await make(owner, { scopes, allowedIps: ['2001:DB8:0::1'] })
  assert.deepEqual(fromOne.key.allowedIps, ['2001:db8::1'])
  assert.equal((await use(fromOne.secret, '/v1/inboxes')).status, 401)
  const there = { 'x-forwarded-for': '2001:db8::1' }
  assert.equal((await use(fromOne.secret, '/v1/inboxes', there)).status, 200)
  assert.equal((await owner.post('/keys', { name: 'K', scopes, allowedIps: ['10.0.0.0/8'] })).status, 400)
  assert.equal(
    (await owner.post('/keys', { name: 'K', scopes, allowedRecipientDomains: ['no domain'] })).status,
    400,
  )
  assert.equal((await owner.post('/keys', { name: 'K', scopes, requestsPerMinute: 1_000_000 })).status, 201)
  const limited = await enterAs(stage, await stage.createCaller({ limits: { requestsPerMinute: 60 } }))
  assert.equal((await limited.post('/keys', { name: 'K', scopes, requestsPerMinute: 61 })).status, 400)
})

test('a rotated key gets a successor with all its restrictions, and works until it is revoked', async () => {
  const { owner, caller } = await setUp()
  const inbox = await caller.api.createInbox()
  const restrictions = {
    scopes: ['mailbox:read', 'mailbox:send'],
    inboxIds: [inbox.id],
    allowedIps: ['127.0.0.1'],
    sendMode: 'reply_only',
    allowedRecipientDomains: ['far.test'],
    confirmNewRecipients: true,
    requestsPerMinute: 7,
    expiresInDays: 3,
  }
  const old = await make(owner, restrictions)
  const call = { method: 'POST', body: { name: 'Booking 2' }, status: 201 }
  const made = await owner.want<Made>(`/keys/${old.key.id}/rotate`, call)
  const { id: _, name, createdAt, expiresAt, ...like } = made.key
  const { id: __, name: ___, createdAt: made0, expiresAt: until0, ...before } = old.key
  assert.deepEqual(like, before)
  assert.equal((like as { confirmNewRecipients?: boolean }).confirmNewRecipients, true)
  assert.equal(name, 'Booking 2')
  assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), Date.parse(until0) - Date.parse(made0))
  const local = { 'x-forwarded-for': '127.0.0.1' }
  for (const secret of [old.secret, made.secret])
    assert.equal((await use(secret, '/v1/inboxes', local)).status, 200)
  await owner.want(`/keys/${old.key.id}`, { method: 'DELETE', status: 204 })
  assert.equal((await use(old.secret, '/v1/inboxes', local)).status, 401)
  assert.equal((await use(made.secret, '/v1/inboxes', local)).status, 200)
  assert.equal((await owner.call(`/keys/${old.key.id}/rotate`, call)).status, 404)
  await owner.want(`/keys/${old.key.id}`, { method: 'DELETE', status: 204 })
})

test('a key shows its maker, and a rotated one who rotated it, also after they left', async () => {
  const { owner, caller } = await setUp()
  const member = await enterAs(stage, caller, 'member')
  const who = ({ session }: Visitor) => ({ name: 'Ada Lovelace', email: session!.person.email })
  const old = await make(owner, { scopes: ['mailbox:read'] })
  assert.deepEqual(old.key.madeBy, who(owner))
  const call = { method: 'POST', body: { name: 'Booking 2' }, status: 201 }
  const rotated = await member.want<Made>(`/keys/${old.key.id}/rotate`, call)
  assert.deepEqual(rotated.key.madeBy, who(member))
  const makers = async () =>
    (await owner.want<{ keys: Key[] }>('/keys')).keys.map(({ name, madeBy }) => [name, madeBy])
  const wanted = [
    ['Booking 2', who(member)],
    ['Booking', who(owner)],
    ['test', null],
  ]
  assert.deepEqual(await makers(), wanted)
  await member.want(`/members/${member.session!.person.id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual(await makers(), wanted)
})

test('a key that the operator made for an agent stays an agent’s key when rotated', async () => {
  const { owner, caller } = await setUp()
  const { keyId } = await addKey({ foundation: stage }, caller, {
    kind: 'agent',
    scopes: ['mailbox:read'],
    sendMode: 'reply_only',
  })
  const { key } = await owner.want<Made>(`/keys/${keyId}/rotate`, {
    method: 'POST',
    body: { name: 'Agent 2' },
    status: 201,
  })
  assert.equal(key.kind, 'agent')
})

const serverKey = { kind: 'server', scopes: ['delivery:send', 'validation:use', 'delivery:read'] }

test('a server key is refused, with a hint who can grant it, until the operator grants it', async () => {
  const { owner, caller } = await setUp()
  const refused = await owner.post('/keys', { name: 'Shop', ...serverKey })
  assert.deepEqual([refused.status, refused.body.error], [403, 'insufficient_scope'])
  assert.match(refused.body.message!, /The operator of this service can grant them/)
  const { secret } = await make(owner, { scopes: ['mailbox:read', 'mailbox:send'] })
  const call = { method: 'POST', headers: { 'x-api-key': secret } }
  const response = await fetch(`${stage.base}/v1/send`, call)
  const body = (await response.json()) as { error: string; message: string }
  assert.deepEqual([response.status, body.error], [403, 'insufficient_scope'])
  assert.match(body.message, /needs a server key.*the operator of this service can grant your organization/)
  assert.equal(owner.session!.organization!.serverKeys, false)
  await changeLimits(stage, caller.organizationId, { serverKeys: true })
  const { organization } = await owner.want<{ organization: { serverKeys: boolean } }>('/session')
  assert.equal(organization.serverKeys, true)
  await make(owner, serverKey)
})

test('a server key sends from a domain and validates, for up to a year', async () => {
  const { owner, caller } = await setUp()
  await changeLimits(stage, caller.organizationId, { serverKeys: true })
  const { key, secret } = await make(owner, { ...serverKey, expiresInDays: 365 })
  assert.deepEqual([key.kind, key.scopes], ['server', serverKey.scopes])
  assert.equal(Date.parse(key.expiresAt) - Date.parse(key.createdAt), 365 * dayMs)
  for (const path of ['/v1/send', '/v1/validate', '/v1/suppressions']) {
    const call = { method: 'POST', headers: { 'x-api-key': secret } }
    // The key is admitted. The request then fails because it has no body.
    assert.equal((await fetch(stage.base + path, call)).status, 400, path)
  }
  for (const wrong of [
    { ...serverKey, expiresInDays: 366 },
    { ...serverKey, scopes: ['*'] },
    { ...serverKey, kind: 'agent' },
    { ...serverKey, kind: undefined },
    { scopes: ['mailbox:read'], expiresInDays: 31 },
  ])
    assert.equal((await owner.post('/keys', { name: 'K', ...wrong })).status, 400, JSON.stringify(wrong))
})

test('without the grant server keys work but are not rotated, and with it their lifetime is kept', async () => {
  const { owner, caller } = await setUp()
  const grant = (serverKeys: boolean) => changeLimits(stage, caller.organizationId, { serverKeys })
  await grant(true)
  const old = await make(owner, { ...serverKey, expiresInDays: 90 })
  const rotate = () => owner.post(`/keys/${old.key.id}/rotate`, { name: 'Shop 2' })
  await grant(false)
  assert.equal((await use(old.secret, '/v1/submissions')).status, 200)
  assert.equal((await owner.post('/keys', { name: 'K', ...serverKey })).body.error, 'insufficient_scope')
  const refused = await rotate()
  assert.deepEqual([refused.status, refused.body.error], [403, 'insufficient_scope'])
  await grant(true)
  const { key } = (await rotate()).body as unknown as Made
  assert.deepEqual([key.kind, key.scopes], ['server', serverKey.scopes])
  assert.equal(Date.parse(key.expiresAt) - Date.parse(key.createdAt), 90 * dayMs)
})

test('a key with the operator’s further rights can be revoked here, but not rotated', async () => {
  const { owner, caller } = await setUp()
  const rotated = await owner.post(`/keys/${caller.keyId}/rotate`, { name: 'More' })
  assert.equal(rotated.body.error, 'insufficient_scope')
  await owner.want(`/keys/${caller.keyId}`, { method: 'DELETE', status: 204 })
  assert.equal((await use(caller.secret, '/v1/inboxes')).status, 401)
})

test('a member’s own key cannot be listed, rotated or revoked', async () => {
  const { owner } = await setUp()
  const [own] = await stage.db.query<{ id: string }>('select id from api_key where person_id = $1', [
    owner.session!.person.id,
  ])
  assert.equal((await owner.post(`/keys/${own!.id}/rotate`, { name: 'Mine' })).status, 404)
  assert.equal((await owner.call(`/keys/${own!.id}`, { method: 'DELETE' })).status, 404)
  assert.equal((await owner.call('/inboxes')).status, 200)
})

interface Entry {
  actor: string
  action: string
  subject: string
  detail: Record<string, unknown>
  ip: string | null
}

test('the audit log shows who acted, and from where, by session and by key', async () => {
  const { owner, caller } = await setUp()
  owner.ip = '203.0.113.9'
  const { email } = owner.session!.person
  const { key } = await make(owner, { scopes: ['mailbox:read'] })
  await owner.want(`/keys/${key.id}`, { method: 'DELETE', status: 204 })
  const webhook = { url: 'https://app.example.com/hooks' }
  const hook = await owner.want<{ id: string }>('/webhooks', { method: 'POST', status: 201, body: webhook })
  await owner.want(`/webhooks/${hook.id}/rotate-secret`, { method: 'POST' })
  await owner.want(`/webhooks/${hook.id}`, { method: 'DELETE', status: 204 })
  const domain = await owner.want<{ id: string }>('/domains', {
    method: 'POST',
    status: 201,
    body: { domain: 'audited.example' },
  })
  await owner.want(`/domains/${domain.id}`, { method: 'DELETE', status: 204 })
  const inbox = await caller.api.createInbox('audited')
  await caller.api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  const refused = await owner.call(`/inboxes/inb_${'0'.repeat(24)}`, { method: 'DELETE' })
  assert.equal(refused.status, 204)
  const { entries } = await owner.want<{ entries: Entry[] }>('/audit')
  const own = { actor: email, ip: '203.0.113.9' }
  const told = entries
    .reverse()
    .filter(({ action }) => action !== 'session.opened')
    .map(({ actor, action, subject, ip }) => ({ actor, action, subject, ip }))
  assert.deepEqual(told, [
    { actor: 'operator', action: 'organization.created', subject: 'Test', ip: null },
    { actor: 'operator', action: 'key.created', subject: 'test', ip: null },
    { ...own, action: 'key.created', subject: 'Booking' },
    { ...own, action: 'key.revoked', subject: 'Booking' },
    { ...own, action: 'webhook.created', subject: hook.id },
    { ...own, action: 'webhook.secret_rotated', subject: hook.id },
    { ...own, action: 'webhook.deleted', subject: hook.id },
    { ...own, action: 'domain.registered', subject: 'audited.example' },
    { ...own, action: 'domain.deleted', subject: 'audited.example' },
    { actor: 'test (key)', action: 'inbox.created', subject: 'audited@inbox.test', ip: '127.0.0.1' },
    { actor: 'test (key)', action: 'inbox.deleted', subject: 'audited@inbox.test', ip: '127.0.0.1' },
  ])
  assert.deepEqual(entries.find(({ subject }) => subject === 'Booking')!.detail, {
    id: key.id,
    scopes: ['mailbox:read'],
  })
})

test('the audit log is read page by page, and whole as a table that spreadsheets do not execute', async () => {
  const { owner } = await setUp()
  const { email } = owner.session!.person
  await make(owner, { name: '=HYPERLINK("https://evil.example","x")', scopes: ['mailbox:read'] })
  await make(owner, { name: 'plain', scopes: ['mailbox:read'] })
  const names: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
    const page: { entries: Entry[]; nextCursor: string | null } = await owner.want(`/audit?limit=1${query}`)
    names.push(...page.entries.map(({ subject }) => subject))
    cursor = page.nextCursor
  }
  assert.deepEqual(names, ['plain', '=HYPERLINK("https://evil.example","x")', email, 'test', 'Test'])
  const answer = await owner.call<string>('/audit.csv')
  assert.match(answer.headers.get('content-type')!, /^text\/csv/)
  assert.equal(answer.headers.get('content-disposition'), 'attachment; filename="audit.csv"')
  const lines = answer.body.split('\r\n')
  assert.equal(lines[0], '"at","actor","action","subject","detail","ip","id"')
  assert.equal(lines.length, 7)
  assert.ok(lines[1]!.includes(`"${email}","key.created","plain","{""id"":`))
  assert.ok(lines[2]!.includes(`"'=HYPERLINK(""https://evil.example"",""x"")"`))
})
