// Tests passkeys: adding one, signing in with one, malformed or forged ones, and which ones a password reset removes.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { PersonId } from '../../../src/base/ids.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { untilLocked } from '../../support/lock-waits.ts'
import { setStage } from '../stage.ts'
import { enterAs, join, lastToken, lettersTo, openAs, password, type Session, Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const origin = stage.base

interface Passkeys {
  passkeys: { id: string; name: string; lastUsedAt: string | null }[]
}

interface Preview {
  added: { name: string | null }[]
  error?: string
}

const namesOf = ({ body }: { body: Preview }) => body.added.map(({ name }) => name)

async function register(by: Visitor, authenticator: Authenticator, name = 'Laptop') {
  const options = await by.want<never>('/passkeys/registration', { method: 'POST', body: {} })
  const response = authenticator.create(options, origin)
  return await by.post<{ id: string; name: string; error?: string }>('/passkeys', { name, response })
}

async function challenge(by: Visitor) {
  return await by.want<{ challenge: string; rpId: string }>('/passkeys/challenge', {
    method: 'POST',
    body: {},
  })
}

async function signIn(by: Visitor, authenticator: Authenticator) {
  const response = authenticator.get(await challenge(by), origin)
  return await by.post<Session & { error?: string }>('/session/passkey', { response })
}

test('a passkey is made, signs its person in, is listed with its last use, and is removed', async () => {
  const ada = await enterAs(stage)
  const authenticator = new Authenticator()
  const made = await register(ada, authenticator)
  assert.deepEqual([made.status, made.body.name], [201, 'Laptop'])
  assert.equal((await ada.want<Passkeys>('/passkeys')).passkeys[0]!.lastUsedAt, null)
  const other = new Visitor(stage)
  const { status, body } = await signIn(other, authenticator)
  assert.equal(status, 200)
  assert.equal(body.person.id, ada.session!.person.id)
  assert.ok((await ada.want<Passkeys>('/passkeys')).passkeys[0]!.lastUsedAt)
  assert.equal((await signIn(new Visitor(stage), authenticator)).status, 200)
  const stranger = await enterAs(stage)
  assert.equal((await stranger.call(`/passkeys/${made.body.id}`, { method: 'DELETE' })).status, 404)
  assert.deepEqual((await stranger.want<Passkeys>('/passkeys')).passkeys, [])
  await ada.want(`/passkeys/${made.body.id}`, { method: 'DELETE', status: 204 })
  assert.equal((await signIn(new Visitor(stage), authenticator)).body.error, 'sign_in_failed')
})

test('a passkey is made once, with its maker’s challenge, and in time', async () => {
  const [ada, grace] = [await enterAs(stage), await enterAs(stage)]
  const authenticator = new Authenticator()
  const options = await ada.want<never>('/passkeys/registration', { method: 'POST', body: {} })
  const body = { name: 'L', response: authenticator.create(options, origin) }
  assert.equal((await grace.post('/passkeys', body)).body.error, 'link_expired')
  const cookie = '__Host-posthorn-passkey'
  grace.cookies.set(cookie, ada.cookies.get(cookie)!)
  assert.equal((await grace.post('/passkeys', body)).body.error, 'link_expired')
  const kept = ada.cookies.get(cookie)!
  assert.equal((await ada.post('/passkeys', body)).status, 201)
  assert.equal(ada.cookies.has(cookie), false)
  ada.cookies.set(cookie, kept)
  assert.equal((await ada.post('/passkeys', body)).body.error, 'address_taken')
  const late = await ada.want<never>('/passkeys/registration', { method: 'POST', body: {} })
  stage.clock.advance(5 * 60_000)
  const made = new Authenticator().create(late, origin)
  assert.equal((await ada.post('/passkeys', { name: 'L', response: made })).body.error, 'link_expired')
})

test('a passkey for another site, or a malformed one, is refused', async () => {
  const ada = await enterAs(stage)
  for (const make of [
    (options: never) => new Authenticator().create(options, 'https://evil.example'),
    (options: object) =>
      new Authenticator().create({ ...options, rp: { id: 'evil.example' } } as never, origin),
    (options: object) => new Authenticator().create({ ...options, challenge: 'AAAA' } as never, origin),
    () => ({}),
    () => ({ id: 'AAAA', rawId: 'AAAA', type: 'public-key', response: {} }),
    () => ({
      id: 'AAAA',
      rawId: 'AAAA',
      type: 'public-key',
      response: { attestationObject: '!', clientDataJSON: '!' },
    }),
  ]) {
    const options = await ada.want<never>('/passkeys/registration', { method: 'POST', body: {} })
    const { status, body } = await ada.post('/passkeys', { name: 'L', response: make(options) })
    assert.deepEqual([status, body.error], [400, 'invalid_request'])
  }
})

test('an answer signed for another site, another challenge or by another key is refused', async () => {
  const ada = await enterAs(stage)
  const [authenticator, stranger] = [new Authenticator(), new Authenticator()]
  await register(ada, authenticator)
  const attempts: ((options: { challenge: string; rpId: string }) => object)[] = [
    (options) => authenticator.get(options, 'https://evil.example'),
    (options) => authenticator.get({ ...options, rpId: 'evil.example' }, origin),
    (options) => authenticator.get({ ...options, challenge: 'AAAA' }, origin),
    (options) => stranger.get(options, origin),
    (options) => ({ ...stranger.get(options, origin), id: authenticator.id.toString('base64url') }),
    (options) => {
      const id = authenticator.id.toString('base64url')
      return { ...stranger.get(options, origin), id, rawId: id }
    },
    (options) => {
      const given = authenticator.get(options, origin)
      return { ...given, response: { ...given.response, userHandle: Buffer.alloc(16).toString('base64url') } }
    },
    () => ({}),
    () => ({ rawId: 7 }),
  ]
  for (const attempt of attempts) {
    const by = new Visitor(stage)
    const { status, body } = await by.post('/session/passkey', { response: attempt(await challenge(by)) })
    assert.deepEqual([status, body.error], [401, 'sign_in_failed'], String(attempt))
    assert.equal(by.cookies.has('__Host-posthorn'), false)
  }
})

test('an answer counts once, and its counter reveals a copied device', async () => {
  const ada = await enterAs(stage)
  const authenticator = new Authenticator()
  await register(ada, authenticator)
  const by = new Visitor(stage)
  const options = await challenge(by)
  const cookie = '__Host-posthorn-passkey'
  const kept = by.cookies.get(cookie)!
  const response = authenticator.get(options, origin)
  assert.equal((await by.post('/session/passkey', { response })).status, 200)
  assert.equal((await by.post('/session/passkey', { response })).body.error, 'link_expired')
  by.cookies.set(cookie, kept)
  assert.equal((await by.post('/session/passkey', { response })).body.error, 'sign_in_failed')
  authenticator.counter = 0
  assert.equal((await signIn(new Visitor(stage), authenticator)).body.error, 'sign_in_failed')
})

test('a person has at most 20 passkeys', async () => {
  const ada = await enterAs(stage)
  for (let n = 0; n < 20; n++)
    assert.equal((await register(ada, new Authenticator(), `Device ${n}`)).status, 201)
  assert.equal((await register(ada, new Authenticator())).body.error, 'limit_reached')
})

test('the audit log of each of the person’s organizations shows new and removed passkeys', async () => {
  const caller = await stage.createCaller()
  const ada = await enterAs(stage, caller)
  const { body } = await register(ada, new Authenticator(), 'Telephone')
  await ada.want(`/passkeys/${body.id}`, { method: 'DELETE', status: 204 })
  const { entries } = await ada.want<{ entries: { action: string; subject: string }[] }>('/audit?limit=2')
  assert.deepEqual(
    entries.map(({ action, subject }) => [action, subject]),
    [
      ['passkey.removed', 'Telephone'],
      ['passkey.added', 'Telephone'],
    ],
  )
})

test('hostile 25: after five minutes a passkey needs the password, changes are mailed, and a reset ends additions', async () => {
  const ada = await enterAs(stage)
  const { email } = ada.session!.person
  const begin = (body: object) => ada.post<{ error?: string }>('/passkeys/registration', body)
  assert.equal((await begin({})).status, 200)
  stage.clock.advance(5 * 60_000 + 1)
  assert.equal((await begin({})).body.error, 'sign_in_failed')
  assert.equal((await begin({ password: 'not the password' })).body.error, 'sign_in_failed')
  const authenticator = new Authenticator()
  const add = async () => {
    const response = authenticator.create((await begin({ password })).body as never, origin)
    return await ada.want<{ id: string }>('/passkeys', {
      method: 'POST',
      status: 201,
      body: { name: 'Laptop', response },
    })
  }
  const lastLetter = async () => (await lettersTo(stage, email)).at(-1)!
  const { id } = await add()
  assert.equal((await lastLetter()).subject, 'A change of how you sign in')
  assert.match((await lastLetter()).text, /^A passkey was added to your account/)
  await ada.want(`/passkeys/${id}`, { method: 'DELETE', status: 204 })
  assert.match((await lastLetter()).text, /^A passkey of your account at Posthorn was removed/)
  // Signing in with a passkey counts like the password.
  await add()
  const again = new Visitor(stage)
  assert.equal((await signIn(again, authenticator)).status, 200)
  await again.reload()
  assert.equal((await again.post('/passkeys/registration', {})).status, 200)

  await ada.post('/resets', { email })
  const token = await lastToken(stage, email)
  const preview = await new Visitor(stage).post<Preview>('/resets/preview', { token })
  assert.deepEqual(namesOf(preview), ['Laptop'])
  await ada.enter('/resets/complete', { token, password: 'staple battery horse correct' })
  assert.match(
    (await lastLetter()).text,
    /^A new password was chosen .* last proved this address: 1 passkey\./,
  )
  assert.deepEqual((await ada.want<Passkeys>('/passkeys')).passkeys, [])
  assert.equal((await signIn(new Visitor(stage), authenticator)).body.error, 'sign_in_failed')
})

test('hostile 25: a reset keeps the passkeys that the person names, and no others', async () => {
  const ada = await enterAs(stage)
  const { email } = ada.session!.person
  const [own, strange] = [new Authenticator(), new Authenticator()]
  const { body } = await register(ada, own, 'Own')
  await ada.post('/resets', { email })
  const token = await lastToken(stage, email)
  assert.deepEqual(namesOf(await ada.post<Preview>('/resets/preview', { token })), ['Own'])
  // An intruder with the person's session adds a passkey while the person chooses a password.
  assert.equal((await register(ada, strange, 'Strange')).status, 201)
  const chosen = { token, password: 'staple battery horse correct', keep: [body.id] }
  await ada.enter('/resets/complete', chosen)
  assert.match(
    (await lettersTo(stage, email)).at(-1)!.text,
    /Removed, .*: 1 passkey\..* Kept, .*: 1 passkey\./s,
  )
  assert.equal((await signIn(new Visitor(stage), own)).status, 200)
  assert.equal((await signIn(new Visitor(stage), strange)).body.error, 'sign_in_failed')
  assert.equal((await ada.post('/resets/preview', { token })).body.error, 'link_expired')
  // From now on the passkey counts as known.
  await ada.post('/resets', { email })
  const next = { token: await lastToken(stage, email) }
  assert.deepEqual(namesOf(await ada.post<Preview>('/resets/preview', next)), [])
})

interface AddedEntries {
  added: { id: string; kind: string; name: string; organization: { id: string; name: string } | null }[]
  unlisted: number
}

const chosen = 'staple battery horse correct'
const hookUrl = (name: string) => `https://app.example.com/${name}`

/** Creates a key, a webhook, a webhook with the key and, for an owner, an invitation. */
async function make(by: Visitor, name: string) {
  const key = { name, scopes: ['mailbox:read', 'webhook:manage'] }
  const { secret } = await by.want<{ secret: string }>('/keys', { method: 'POST', status: 201, body: key })
  const hook = { url: hookUrl(name) }
  const { id } = await by.want<{ id: string }>('/webhooks', { method: 'POST', status: 201, body: hook })
  const ofKey = await fetch(`${stage.base}/v1/webhooks`, {
    method: 'POST',
    headers: { 'x-api-key': secret, 'content-type': 'application/json' },
    body: JSON.stringify({ url: hookUrl(`${name}-by-key`) }),
  })
  assert.equal(ofKey.status, 201)
  const ids = [id, ((await ofKey.json()) as { id: string }).id]
  if (by.session!.organization!.role === 'owner')
    await by.want('/invitations', {
      method: 'POST',
      status: 201,
      body: { email: `${name}@far.test`, role: 'owner' },
    })
  return { secret, ids }
}

const kindsOf = ({ added }: AddedEntries) => added.map(({ kind, name }) => `${kind} ${name}`).sort()
const everything = (name: string) =>
  [
    `invitation ${name}@far.test`,
    `key ${name}`,
    `webhook ${hookUrl(name)}`,
    `webhook ${hookUrl(`${name}-by-key`)}`,
  ].sort()

/** Returns the status of a call with the key, then the status of each webhook. */
async function worksOf(by: Visitor, { secret, ids }: { secret: string; ids: string[] }) {
  const { status } = await fetch(`${stage.base}/v1/inboxes`, { headers: { 'x-api-key': secret } })
  const hooks = await Promise.all(ids.map((id) => by.want<{ status: string }>(`/webhooks/${id}`)))
  return [status, ...hooks.map((hook) => hook.status)]
}

const [works, ended] = [
  [200, 'active', 'active'],
  [401, 'disabled', 'disabled'],
]

async function askReset(by: Visitor) {
  const { email } = by.session!.person
  await by.post('/resets', { email })
  const token = await lastToken(stage, email)
  const preview = await new Visitor(stage).want<AddedEntries>('/resets/preview', {
    method: 'POST',
    body: { token },
  })
  return { token, preview }
}

async function auditOf(by: Visitor, count: number) {
  const { entries } = await by.want<{
    entries: { action: string; subject: string; actor: string; detail: { by?: string } }[]
  }>(`/audit?limit=${count}`)
  return entries
}

test('hostile 25: a reset lists what a stolen session made in each organization, and ends it', async () => {
  const [first, second] = [await stage.createCaller(), await stage.createCaller()]
  const ada = await enterAs(stage, first)
  const grace = await enterAs(stage, first, 'member')
  const { id, email } = ada.session!.person
  const thief = await openAs(stage, id as PersonId)
  const [here, ofGrace] = [await make(thief, 'here'), await make(grace, 'of-grace')]
  await join(stage, second, { id: id as PersonId, email }, 'owner')
  // By then the service reads again which organizations a person is in.
  stage.clock.advance(1_000)
  await thief.want('/session/organization', {
    method: 'PUT',
    body: { organizationId: second.organizationId },
  })
  await thief.reload()
  const there = await make(thief, 'there')

  const { token, preview } = await askReset(ada)
  assert.deepEqual(kindsOf(preview), [...everything('here'), ...everything('there')].sort())
  // Both organizations have the same name.
  const added = Map.groupBy(preview.added, ({ organization }) => organization!.id)
  assert.deepEqual([...added.keys()].sort(), [first.organizationId, second.organizationId].sort())
  assert.ok(added.get(second.organizationId)!.every(({ name }) => name.includes('there')))
  assert.ok(preview.added.every(({ organization }) => organization!.name === 'Test'))
  assert.equal(preview.unlisted, 0)
  await ada.enter('/resets/complete', { token, password: chosen })

  assert.deepEqual(await worksOf(ada, here), ended)
  assert.deepEqual(await worksOf(grace, ofGrace), works)
  assert.deepEqual((await ada.want<{ invitations: object[] }>('/members')).invitations, [])
  // The key in the other organization has ended too, and each organization has its own audit entries.
  await ada.want('/session/organization', {
    method: 'PUT',
    body: { organizationId: second.organizationId },
  })
  await ada.reload()
  assert.deepEqual(await worksOf(ada, there), ended)
  const entries = (await auditOf(ada, 10)).filter(({ detail }) => detail.by === 'reset')
  assert.deepEqual(
    entries.map(({ action, subject }) => `${action} ${subject}`).sort(),
    [
      'key.revoked there',
      'member.invitation_withdrawn there@far.test',
      `password.changed ${email}`,
      ...there.ids.map((webhookId) => `webhook.changed ${webhookId}`),
    ].sort(),
  )
  assert.ok(entries.every(({ actor }) => actor === email))
  assert.match(
    (await lettersTo(stage, email)).at(-1)!.text,
    /Removed, .*: 2 API keys, 4 webhooks and 2 open invitations\..* audit log/s,
  )
})

test('hostile 25: a reset keeps the keys and webhooks that the person names, and no others', async () => {
  const ada = await enterAs(stage, await stage.createCaller())
  const own = await make(ada, 'own')
  const { token, preview } = await askReset(ada)
  assert.deepEqual(kindsOf(preview), everything('own'))
  // An intruder with the person's session creates more while the person chooses a password.
  const strange = await make(ada, 'strange')
  const keep = preview.added.filter(({ kind }) => kind !== 'invitation').map(({ id }) => id)
  await ada.enter('/resets/complete', { token, password: chosen, keep })
  assert.deepEqual(await worksOf(ada, own), works)
  assert.deepEqual(await worksOf(ada, strange), ended)
  assert.match(
    (await lettersTo(stage, ada.session!.person.email)).at(-1)!.text,
    /Removed, .*: 1 API key, 2 webhooks and 2 open invitations\..* Kept, .*: 1 API key and 2 webhooks\./s,
  )
  // From now on these count as known.
  assert.deepEqual((await askReset(ada)).preview, { added: [], unlisted: 0 })
})

test('hostile 25: a thief’s many keys hide none of the person’s own, and unlisted keys end', async () => {
  const caller = await stage.createCaller()
  const ada = await enterAs(stage, caller)
  const own = await make(ada, 'own')
  const { id } = ada.session!.person
  await stage.db.query(
    `insert into api_key (id, organization_id, name, kind, hash, scopes, send_mode, made_by, created_at)
    select gen_random_uuid(), $1, 'Strange ' || n, 'agent', sha256(n::text::bytea), '{mailbox:read}', 'reply_only', $2,
      $3::timestamptz + n * interval '1 second' from generate_series(1, 101) n`,
    [caller.organizationId, id, stage.clock.now()],
  )
  const { token, preview } = await askReset(ada)
  const keys = preview.added.filter(({ kind }) => kind === 'key')
  assert.deepEqual([keys.length, keys[0]!.name, preview.unlisted], [100, 'own', 2])
  await ada.enter('/resets/complete', { token, password: chosen, keep: preview.added.map((one) => one.id) })
  assert.deepEqual(await worksOf(ada, own), works)
  const revoked = await stage.db.query<{ name: string }>(
    'select name from api_key where made_by = $1 and revoked_at is not null order by created_at',
    [id],
  )
  assert.deepEqual(
    revoked.map(({ name }) => name),
    ['Strange 100', 'Strange 101'],
  )
})

test('hostile 25: a stolen session can add or change nothing once a reset began to end it', async () => {
  const caller = await stage.createCaller()
  const ada = await enterAs(stage, caller)
  const colleague = (await enterAs(stage, caller, 'member')).session!.person
  const body = { url: hookUrl('colleague') }
  const hook = await caller.api.want<{ id: string }>('/v1/webhooks', { method: 'POST', status: 201, body })
  const { id } = ada.session!.person
  const thief = await openAs(stage, id as PersonId)
  const options = await thief.want<never>('/passkeys/registration', { method: 'POST', body: {} })
  const response = new Authenticator().create(options, origin)
  const { secret } = await make(thief, 'before')
  const { token } = await askReset(ada)
  const url = hookUrl('late')
  const { reset, requests } = await stage.db.transaction(async (tx) => {
    await tx.query('select from person where id = $1 for update', [id])
    const reset = ada.enter('/resets/complete', { token, password: chosen })
    await untilLocked(stage.db, { saying: 'from person' })
    const requests = [
      thief.post('/keys', { name: 'Late', scopes: ['mailbox:read'] }),
      thief.post('/webhooks', { url }),
      thief.post('/invitations', { email: 'late@far.test', role: 'owner' }),
      thief.post('/passkeys', { name: 'Late', response }),
      thief.call(`/webhooks/${hook.id}`, { method: 'PATCH', body: { url } }),
      thief.call(`/webhooks/${hook.id}/rotate-secret`, { method: 'POST' }),
      thief.call(`/members/${colleague.id}`, { method: 'PATCH', body: { role: 'owner' } }),
      thief.call(`/members/${colleague.id}`, { method: 'DELETE' }),
      fetch(`${stage.base}/v1/webhooks`, {
        method: 'POST',
        headers: { 'x-api-key': secret, 'content-type': 'application/json' },
        body: JSON.stringify({ url }),
      }),
    ]
    await untilLocked(stage.db, { count: requests.length + 1 })
    return { reset, requests }
  })
  await reset
  assert.deepEqual(
    (await Promise.all(requests)).map(({ status }) => status),
    [401, 401, 401, 401, 401, 401, 401, 401, 403],
  )
  assert.deepEqual((await askReset(ada)).preview, { added: [], unlisted: 0 })
})

test('one of two links to a new password used at once works, and the other has expired', async () => {
  const ada = await enterAs(stage)
  const { id } = ada.session!.person
  const tokens = [(await askReset(ada)).token, (await askReset(ada)).token]
  const uses = await stage.db.transaction(async (tx) => {
    await tx.query('select from person where id = $1 for update', [id])
    const uses = tokens.map((token) =>
      new Visitor(stage).post('/resets/complete', { token, password: chosen }),
    )
    await untilLocked(stage.db, { count: 2, saying: 'from person' })
    return uses
  })
  const answers = await Promise.all(uses)
  assert.deepEqual(answers.map(({ status, body }) => body.error ?? status).sort(), [200, 'link_expired'])
})
