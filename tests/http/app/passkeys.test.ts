// Passkeys: made by who is signed in, signed in with; and everything that is not quite one.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Authenticator } from '../../support/authenticator.ts'
import { setStage } from '../stage.ts'
import { enterAs, lastToken, lettersTo, password, type Session, Visitor } from './visitor.ts'

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

test('a passkey is made, lets its person in, is listed with its last use, and is removed', async () => {
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

test('a passkey is made once, with the challenge of its maker, and before it is too late', async () => {
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

test('what was made for another site, or is no passkey at all, is refused', async () => {
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

test('an answer that another site, another challenge or another key signed lets nobody in', async () => {
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

test('an answer counts once, and a copied device is found by its counter', async () => {
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

test('a person has 20 passkeys at most', async () => {
  const ada = await enterAs(stage)
  for (let n = 0; n < 20; n++)
    assert.equal((await register(ada, new Authenticator(), `Device ${n}`)).status, 201)
  assert.equal((await register(ada, new Authenticator())).body.error, 'limit_reached')
})

test('passkeys that come and go stand in the audit log of every organization of the person', async () => {
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

test('hostile 25: after five minutes a passkey needs the password; each change is mailed; a reset ends what was added', async () => {
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
      ...{ method: 'POST', status: 201, body: { name: 'Laptop', response } },
    })
  }
  const lastLetter = async () => (await lettersTo(stage, email)).at(-1)!
  const { id } = await add()
  assert.equal((await lastLetter()).subject, 'A change of how you sign in')
  assert.match((await lastLetter()).text, /^A passkey was added to your account/)
  await ada.want(`/passkeys/${id}`, { method: 'DELETE', status: 204 })
  assert.match((await lastLetter()).text, /^A passkey of your account at Posthorn was removed/)
  // Signing in by a passkey is as good as the password.
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

test('hostile 25: a person who resets their password keeps the passkeys they name, and no other', async () => {
  const ada = await enterAs(stage)
  const { email } = ada.session!.person
  const [own, strange] = [new Authenticator(), new Authenticator()]
  const { body } = await register(ada, own, 'Own')
  await ada.post('/resets', { email })
  const token = await lastToken(stage, email)
  assert.deepEqual(namesOf(await ada.post<Preview>('/resets/preview', { token })), ['Own'])
  // Somebody with their session adds one while they choose a password.
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
  // It is known from now on.
  await ada.post('/resets', { email })
  const next = { token: await lastToken(stage, email) }
  assert.deepEqual(namesOf(await ada.post<Preview>('/resets/preview', next)), [])
})
