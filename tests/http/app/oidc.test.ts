// Tests sign-in through an identity provider: admission, linking, and every answer that deviates from the provider's.
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { newUuid, type PersonId } from '../../../src/base/ids.ts'
import { insertPerson } from '../../../src/store/people/people.ts'
import { type Claims, startIdentityProvider } from '../../support/identity-provider.ts'
import { type Stage, setStage } from '../stage.ts'
import { enterAs, join, lastToken, lettersTo, password, type Session, Visitor } from './visitor.ts'

const provider = await startIdentityProvider({ after })
const oidc = { ...provider, name: 'Example ID' }
const trusting = { trustedProxies: ['127.0.0.0/8'], oidc }
const stage = await setStage({ after }, trusting)
const invited = await setStage({ after }, { ...trusting, isSignUpOpen: false })

afterEach(() => {
  Object.assign(provider, { bend: () => {}, breakSignature: false, userInfo: null })
})

/** Starts at the provider and returns the address to which it redirects the browser. */
async function comeBack(by: Visitor, claims: Claims): Promise<URL> {
  const start = await by.call('/oidc/start')
  assert.equal(start.status, 302)
  provider.claims = claims
  const there = await fetch(start.headers.get('location')!, { redirect: 'manual' })
  assert.equal(there.status, 302)
  return new URL(there.headers.get('location')!)
}

/** Returns the address to which the callback redirects the browser. */
async function land(by: Visitor, { search }: URL): Promise<string | null> {
  const { status, headers } = await by.call(`/oidc/callback${search}`)
  assert.equal(status, 302)
  return headers.get('location')
}

async function signIn(by: Visitor, claims: Claims): Promise<string | null> {
  return await land(by, await comeBack(by, claims))
}

async function personOf(by: Visitor): Promise<Session['person']> {
  return (await by.want<Session>('/session')).person
}

const refused = '/sign-in?refused=sign_in_failed'
const ada = { sub: 'ada', email: 'Ada@Far.test', email_verified: true, name: 'Ada Lovelace' }

test('a verified address lets a new person in, who stays the same when the address changes', async () => {
  const by = new Visitor(stage)
  assert.deepEqual((await by.want<{ oidc: object }>('/access')).oidc, { name: 'Example ID' })
  const back = await comeBack(by, ada)
  // This is the stage's public address.
  assert.equal(back.origin + back.pathname, 'http://127.0.0.1/app/v1/oidc/callback')
  assert.equal(await land(by, back), '/')
  const person = await personOf(by)
  assert.deepEqual([person.email, person.name, person.hasPassword], ['ada@far.test', 'Ada Lovelace', false])
  assert.equal(by.cookies.has('__Host-posthorn-oidc'), false)
  const again = new Visitor(stage)
  assert.equal(await signIn(again, { sub: 'ada', email: 'moved@far.test', email_verified: true }), '/')
  assert.equal((await personOf(again)).id, person.id)
  const anew = new Visitor(stage)
  assert.equal(await signIn(anew, { sub: 'ada' }), '/')
})

test('an unverified address is refused', async () => {
  await enterAs(stage)
  for (const claims of [
    { sub: 'x1', email: 'person-1@far.test', email_verified: false },
    { sub: 'x2', email: 'person-1@far.test' },
    { sub: 'x3', email: 'person-1@far.test', email_verified: 'true' as never },
    { sub: 'x4', email_verified: true },
    { sub: 'x5', email: 'no address', email_verified: true },
  ])
    assert.equal(await signIn(new Visitor(stage), claims), refused, JSON.stringify(claims))
})

test('the address may come from the provider’s user info', async () => {
  const by = new Visitor(stage)
  provider.userInfo = { sub: 'informed', email: 'informed@far.test', email_verified: true }
  assert.equal(await signIn(by, { sub: 'informed' }), '/')
  assert.equal((await personOf(by)).email, 'informed@far.test')
  provider.userInfo = { sub: 'another', email: 'informed-2@far.test', email_verified: true }
  assert.equal(await signIn(new Visitor(stage), { sub: 'informed-2' }), refused)
})

test('a verified address links a person’s account once', async () => {
  const known = await enterAs(stage)
  const { id, email } = known.session!.person
  const by = new Visitor(stage)
  assert.equal(await signIn(by, { sub: 'known', email, email_verified: true }), '/')
  assert.deepEqual([(await personOf(by)).id, (await personOf(by)).hasPassword], [id, true])
  assert.equal(await signIn(new Visitor(stage), { sub: 'usurper', email, email_verified: true }), refused)
})

test('hostile 25: a first password needs a sign-in of the last five minutes, and both changes are mailed', async () => {
  const by = new Visitor(stage)
  const email = 'passwordless@far.test'
  const claims = { sub: 'passwordless', email, email_verified: true }
  assert.equal(await signIn(by, claims), '/')
  await by.reload()
  const choose = () => by.call('/person/password', { method: 'PUT', body: { password } })
  stage.clock.advance(5 * 60_000 + 1)
  assert.equal((await choose()).body.error, 'sign_in_failed')
  await signIn(by, claims)
  await by.reload()
  assert.equal((await choose()).status, 204)
  assert.match((await lettersTo(stage, email)).at(-1)!.text, /^Your password at Posthorn was changed\./)
  const known = await enterAs(stage)
  const linked = known.session!.person.email
  assert.equal(await signIn(new Visitor(stage), { sub: 'linked', email: linked, email_verified: true }), '/')
  assert.match((await lettersTo(stage, linked)).at(-1)!.text, /^An identity provider was linked/)
})

test('hostile 25: a reset shows and unlinks an identity that was linked after the address was proved', async () => {
  const known = await enterAs(stage)
  const { email } = known.session!.person
  stage.clock.advance(1_000)
  const claims = { sub: 'thief', email, email_verified: true }
  assert.equal(await signIn(new Visitor(stage), claims), '/')
  await known.post('/resets', { email })
  const token = await lastToken(stage, email)
  const { body } = await new Visitor(stage).post<{ added: { id: string }[] }>('/resets/preview', { token })
  assert.deepEqual(
    body.added.map(({ id }) => id),
    ['identity'],
  )
  await known.enter('/resets/complete', { token, password: 'staple battery horse correct' })
  const other = new Visitor(stage)
  assert.equal(await signIn(other, { ...claims, email: 'another@far.test' }), '/')
  assert.notEqual((await personOf(other)).id, known.session!.person.id)
})

test('hostile 24: a password set by another before a provider proved the address is refused', async () => {
  const email = 'prepared@far.test'
  const thief = new Visitor(stage)
  await thief.want('/sign-up', { method: 'POST', status: 202, body: { email, password, name: 'Thief' } })
  const planted = await lastToken(stage, email)
  assert.equal(await signIn(new Visitor(stage), { sub: 'owner', email, email_verified: true }), '/')
  assert.equal((await thief.post('/session', { email, password })).body.error, 'sign_in_failed')
  assert.equal((await thief.post('/confirmations', { token: planted })).body.error, 'link_expired')
})

test('if sign-up needs an invitation, only invited people get in', async () => {
  const stranger = new Visitor(invited)
  assert.equal((await stranger.want<{ signUp: boolean }>('/access')).signUp, false)
  const body = { email: 'stranger@far.test', password, name: 'S' }
  assert.equal((await stranger.post('/sign-up', body)).status, 404)
  assert.equal(await signIn(stranger, { sub: 's', email: body.email, email_verified: true }), refused)
  await inviteInto(invited, body.email)
  const by = new Visitor(invited)
  assert.equal(await signIn(by, { sub: 's', email: body.email, email_verified: true }), '/')
  const session = await by.reload()
  const token = await lastToken(invited, body.email)
  const accepted = await by.enter('/invitations/accept', { token })
  assert.equal(accepted.person.id, session.person.id)
  assert.equal(accepted.organization!.role, 'member')
})

async function inviteInto(there: Stage, email: string): Promise<void> {
  const caller = await there.createCaller()
  const { db, clock } = there
  const id = newUuid<PersonId>()
  const owner = { id, email: `owner-${id}@far.test`, name: 'Owner', passwordHash: null }
  const at = clock.now()
  await db.transaction((tx) => insertPerson(tx, { ...owner, confirmedAt: at, createdAt: at }))
  await join(there, caller, owner, 'owner')
  const by = new Visitor(there)
  await by.want('/resets', { method: 'POST', status: 202, body: { email: owner.email } })
  await by.enter('/resets/complete', { token: await lastToken(there, owner.email), password })
  await by.want('/invitations', { method: 'POST', status: 201, body: { email, role: 'member' } })
}

type Bend = (token: { header: Record<string, unknown>; payload: Record<string, unknown> }) => void
const bent: [what: string, bend: Bend][] = [
  ['of another issuer', ({ payload }) => void (payload['iss'] = 'https://evil.example')],
  ['for another client', ({ payload }) => void (payload['aud'] = 'another')],
  ['with another nonce', ({ payload }) => void (payload['nonce'] = 'another')],
  ['without a nonce', ({ payload }) => void delete payload['nonce']],
  ['that has run out', ({ payload }) => void (payload['exp'] = 1_000_000_000)],
  ['without a signature', ({ header }) => void (header['alg'] = 'none')],
  ['of a shared secret', ({ header }) => void (header['alg'] = 'HS256')],
  ['without a subject', ({ payload }) => void delete payload['sub']],
]

for (const [what, bend] of bent)
  test(`a token ${what} is refused`, async () => {
    const by = new Visitor(stage)
    provider.bend = bend
    assert.equal(await signIn(by, ada), refused)
    assert.equal(by.cookies.has('__Host-posthorn'), false)
  })

test('a token without the provider’s signature is refused', async () => {
  provider.breakSignature = true
  assert.equal(await signIn(new Visitor(stage), ada), refused)
})

test('a sign-in ends only in the browser that began it, with its state, once, and in time', async () => {
  const [by, other] = [new Visitor(stage), new Visitor(stage)]
  const ended = '/sign-in?refused=link_expired'
  const back = await comeBack(by, ada)
  // Security: otherwise the author of a link could sign its victim in to the author's account.
  assert.equal(await land(other, back), ended)
  await comeBack(other, ada)
  const { exchanges } = provider
  assert.equal(await land(other, back), refused)
  assert.equal(provider.exchanges, exchanges, 'a code was given out for the state of somebody else')
  assert.equal(await land(by, back), '/')
  assert.equal(await land(by, back), ended)
  const late = await comeBack(by, ada)
  stage.clock.advance(15 * 60_000)
  assert.equal(await land(by, late), ended)
  assert.equal(await land(new Visitor(stage), new URL('http://x/?error=access_denied')), ended)
  await comeBack(by, ada)
  assert.equal(await land(by, new URL('http://x/?error=access_denied&state=x')), refused)
})

test('a provider that does not answer leads back to the sign-in page, which says it is unavailable', async () => {
  const away = await setStage({ after }, { ...trusting, oidc: { ...oidc, issuer: 'http://127.0.0.1:9' } })
  const { status, headers } = await new Visitor(away).call('/oidc/start')
  assert.deepEqual([status, headers.get('location')], [302, '/sign-in?refused=unavailable'])
})

test('without a provider its operations do not exist, and no log has secrets or codes', async () => {
  const plain = await setStage({ after })
  assert.equal((await new Visitor(plain).call('/oidc/start')).status, 404)
  assert.equal((await new Visitor(plain).want<{ oidc: null }>('/access')).oidc, null)
  assert.ok(!stage.log().includes('a secret of the provider'))
  assert.ok(!/code=[0-9a-f]{32}/.test(stage.log()))
})
