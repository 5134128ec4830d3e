// Tests sign-up by mail, passwords, resets and sessions; none of them reveals whether an address has an account.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setStage } from '../stage.ts'
import { enterAs, lastToken, lettersTo, password, type Session, Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const visitor = () => new Visitor(stage)

const cookie = '__Host-posthorn'

test('any visitor can read how people get in', async () => {
  const { status, body } = await visitor().call('/access')
  assert.equal(status, 200)
  assert.deepEqual(body, {
    signUp: true,
    oidc: null,
    development: true,
    managedDomain: 'inbox.test',
    hasOperatorApproval: true,
  })
})

test('a person who signs up confirms the address by mail, and is signed in', async () => {
  const ada = visitor()
  const email = 'Ada.Lovelace@Far.test'
  const body = { email, password, name: 'Ada Lovelace' }
  assert.deepEqual((await ada.post('/sign-up', body)).body, {})
  assert.equal((await ada.call('/session')).status, 204)
  assert.equal((await ada.post('/session', { email, password })).body.error, 'sign_in_failed')
  const letters = await lettersTo(stage, 'ada.lovelace@far.test')
  assert.match(letters[0]!.text, /^http:\/\/127\.0\.0\.1\/confirm#[A-Za-z0-9_-]{43}$/m)
  // A letter about the sign-in would reveal by its timing that the address had no account before.
  assert.equal(letters.length, 1)
  const token = await lastToken(stage, 'ada.lovelace@far.test')
  const answer = await ada.call<Session>('/confirmations', { method: 'POST', body: { token } })
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.body.person, {
    id: answer.body.person.id,
    email: 'ada.lovelace@far.test',
    name: 'Ada Lovelace',
    hasPassword: true,
  })
  assert.equal(answer.body.organization, null)
  const [set] = answer.headers.getSetCookie()
  assert.match(set!, /^__Host-posthorn=[A-Za-z0-9_-]{43}; /)
  for (const attribute of ['HttpOnly', 'Secure', 'SameSite=Lax', 'Path=/'])
    assert.match(set!, new RegExp(attribute))
  assert.doesNotMatch(set!, /Domain/i)
  assert.equal((await ada.post('/confirmations', { token })).body.error, 'link_expired')
  const other = visitor()
  assert.equal((await other.signIn('ADA.lovelace@far.TEST')).person.email, 'ada.lovelace@far.test')
})

test('F28: all mistakes of a body are listed together, and F27: a missing resource is named by its kind', async () => {
  const { status, body } = await visitor().post('/sign-up', { email: 'ada', password: 7, nickname: 'A' })
  assert.deepEqual([status, body.error], [400, 'invalid_request'])
  assert.match(
    body.message,
    /^\/name is required; \/nickname is unknown \(known: [^;]+\); \/\w+ must be [^;]+; and more$/,
  )
  const member = await enterAs(stage, await stage.createCaller())
  const nowhere = await member.call(`/threads/thr_${'0'.repeat(24)}`)
  assert.deepEqual([nowhere.status, nowhere.body.message], [404, 'There is no such thread.'])
})

test('a link expires after a day', async () => {
  const late = visitor()
  await late.want('/sign-up', {
    method: 'POST',
    status: 202,
    body: { email: 'late@far.test', password, name: 'L' },
  })
  const token = await lastToken(stage, 'late@far.test')
  stage.clock.advance(24 * 3_600_000 + 1)
  assert.equal((await late.post('/confirmations', { token })).body.error, 'link_expired')
  assert.equal((await late.post('/confirmations', { token: 'x' })).body.error, 'link_expired')
})

test('hostile 24: a link confirms its own sign-up, even if others sign up with the address', async () => {
  const [victim, attacker] = [visitor(), visitor()]
  const email = 'contested@far.test'
  await victim.post('/sign-up', { email, password, name: 'Owner' })
  const own = await lastToken(stage, email)
  await attacker.post('/sign-up', { email, password: 'the password of the thief', name: 'Thief' })
  const other = await lastToken(stage, email)
  assert.equal((await victim.enter('/confirmations', { token: own })).person.name, 'Owner')
  assert.equal((await visitor().signIn(email)).person.email, email)
  const refused = await attacker.post('/session', { email, password: 'the password of the thief' })
  assert.equal(refused.body.error, 'sign_in_failed')
  assert.equal((await attacker.post('/confirmations', { token: other })).body.error, 'link_expired')
})

test('hostile 24: two links of one address, opened at the same moment, confirm one sign-up', async () => {
  const email = 'both-at-once@far.test'
  const tokens: string[] = []
  for (const name of ['One', 'Other']) {
    await visitor().post('/sign-up', { email, password, name })
    tokens.push(await lastToken(stage, email))
  }
  const answers = await Promise.all(tokens.map((token) => visitor().post('/confirmations', { token })))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 410])
})

test('a sign-up with a known address gets the same answer and a mail, and changes nothing', async () => {
  const known = visitor()
  const email = 'known@far.test'
  await known.signUp(email)
  const [again, fresh] = [
    await visitor().post('/sign-up', { email, password: 'another password here', name: 'Somebody' }),
    await visitor().post('/sign-up', { email: 'unknown@far.test', password, name: 'Somebody' }),
  ]
  assert.deepEqual([again.status, again.body], [fresh.status, fresh.body])
  assert.equal((await lettersTo(stage, email)).at(-1)!.subject, 'You have an account already')
  assert.equal((await visitor().signIn(email)).person.name, 'Ada Lovelace')
  assert.equal((await visitor().post('/session', { email, password: 'another password here' })).status, 401)
})

test('a wrong password and an unknown address get the same refusal', async () => {
  await visitor().signUp('exists@far.test')
  const [wrong, nobody] = [
    await visitor().post('/session', { email: 'exists@far.test', password: 'not the password' }),
    await visitor().post('/session', { email: 'exists-not@far.test', password: 'not the password' }),
  ]
  assert.equal(wrong.status, 401)
  assert.deepEqual([wrong.status, wrong.body], [nobody.status, nobody.body])
  assert.deepEqual([...wrong.headers.keys()].sort(), [...nobody.headers.keys()].sort())
  assert.deepEqual(wrong.headers.getSetCookie(), [])
})

for (const [what, email] of [
  ['an account', 'locked@far.test'],
  ['an address that nobody has', 'locked-nobody@far.test'],
] as const)
  test(`after five attempts at ${what} each further one has to wait, from any network`, async () => {
    if (what === 'an account') await visitor().signUp(email)
    const attempt = (given = 'not the password') => visitor().post('/session', { email, password: given })
    for (let n = 0; n < 5; n++) assert.equal((await attempt()).status, 401)
    // Waits this long outlast the hashing, even on a busy machine.
    for (const seconds of [1, 2, 4, 8, 16, 32]) {
      stage.clock.advance(seconds * 1000)
      assert.equal((await attempt()).status, 401)
    }
    const blocked = await attempt(password)
    assert.deepEqual([blocked.status, blocked.body.error], [429, 'too_many_attempts'])
    const seconds = Number(blocked.headers.get('retry-after'))
    assert.ok(seconds > 20 && seconds <= 64, `${seconds} s`)
    stage.clock.advance(64_000)
    assert.equal((await attempt(password)).status, what === 'an account' ? 200 : 401)
    // A success clears the earlier failures.
    if (what === 'an account') for (let n = 0; n < 5; n++) assert.equal((await attempt()).status, 401)
  })

test('parallel attempts pass no more often than consecutive ones', async () => {
  const email = 'parallel@far.test'
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => visitor().post('/session', { email, password: 'not the password' })),
  )
  assert.equal(answers.filter(({ status }) => status === 401).length, 5)
  assert.equal(answers.filter(({ status }) => status === 429).length, 7)
})

test('a network that tries many accounts has to wait, and others do not', async () => {
  const attacker = visitor()
  await visitor().signUp('bystander@far.test')
  const spray = async (n: number) => {
    attacker.ip = `2001:db8:ffff:2::${n}`
    return await attacker.post('/session', { email: `sprayed-${n}@far.test`, password: 'password' })
  }
  const answers: number[] = []
  for (let n = 0; n < 26; n++) {
    if (n >= 20) stage.clock.advance(2 ** (n - 20) * 1000)
    answers.push((await spray(n)).status)
  }
  assert.deepEqual([...new Set(answers)], [401])
  const right = { email: 'bystander@far.test', password }
  assert.equal((await attacker.post('/session', right)).status, 429)
  assert.equal((await visitor().post('/session', right)).status, 200)
})

test('requests cannot flood an address with mail, and the answer stays the same', async () => {
  const email = 'flooded@far.test'
  for (let n = 0; n < 5; n++) {
    assert.equal((await visitor().post('/sign-up', { email, password, name: 'F' })).status, 202)
    assert.equal((await visitor().post('/resets', { email })).status, 202)
  }
  assert.equal((await lettersTo(stage, email)).length, 6)
})

test('a new password by mail ends all sessions and links, and unlocks the account', async () => {
  const email = 'forgetful@far.test'
  const [before, lost] = [visitor(), visitor()]
  await before.signUp(email)
  for (let n = 0; n < 5; n++) await visitor().post('/session', { email, password: 'not the password' })
  assert.deepEqual((await lost.post('/resets', { email })).body, {})
  const first = await lastToken(stage, email)
  assert.match((await lettersTo(stage, email)).at(-1)!.text, /^http:\/\/127\.0\.0\.1\/reset#/m)
  await lost.post('/resets', { email })
  const token = await lastToken(stage, email)
  const chosen = 'an entirely new password'
  assert.equal((await lost.post('/resets/complete', { token, password: 'short' })).status, 400)
  const session = await lost.enter('/resets/complete', { token, password: chosen })
  assert.equal(session.person.email, email)
  stage.clock.advance(1_100)
  assert.equal((await before.call('/session')).status, 204)
  for (const used of [token, first])
    assert.equal(
      (await visitor().post('/resets/complete', { token: used, password })).body.error,
      'link_expired',
    )
  assert.equal((await visitor().post('/session', { email, password })).status, 401)
  assert.equal((await visitor().signIn(email, chosen)).person.email, email)
})

test('a reset for an unknown address gets the same answer and a mail, whose link explains it', async () => {
  const [nobody, somebody] = ['nobody-here@far.test', 'somebody-here@far.test']
  await visitor().signUp(somebody)
  const letters: string[] = []
  for (const email of [nobody, somebody]) {
    const { status, body } = await visitor().post('/resets', { email })
    assert.deepEqual([status, body], [202, {}])
    const { subject, text } = (await lettersTo(stage, email)).at(-1)!
    letters.push(`${subject}\n${text.replace(/#\S+/, '')}`)
  }
  assert.equal(letters[0], letters[1])
  const token = await lastToken(stage, nobody)
  const refused = await visitor().post('/resets/complete', { token, password })
  assert.deepEqual([refused.status, refused.body.error], [401, 'sign_in_failed'])
  assert.match(refused.body.message, /no account for this address/)
  // The visitor signs up within the hour. The same mailbox has already proved the address.
  await visitor().post('/sign-up', { email: nobody, password, name: 'Late' })
  assert.equal((await visitor().enter('/resets/complete', { token, password })).person.email, nobody)
})

test('a link mailed before its account existed does not open the account once the address is proved', async () => {
  const email = 'newcomer@far.test'
  await visitor().post('/resets', { email })
  const token = await lastToken(stage, email)
  stage.clock.advance(1_000)
  const owner = visitor()
  await owner.signUp(email)
  const refused = await visitor().post('/resets/complete', { token, password: 'of whom it was passed on to' })
  assert.deepEqual([refused.status, refused.body.error], [401, 'sign_in_failed'])
  assert.equal((await owner.call('/session')).status, 200)
  await visitor().signIn(email)
})

test('a link for a new password expires after an hour', async () => {
  const email = 'slow@far.test'
  await visitor().signUp(email)
  await visitor().post('/resets', { email })
  const token = await lastToken(stage, email)
  stage.clock.advance(3_600_001)
  assert.equal((await visitor().post('/resets/complete', { token, password })).body.error, 'link_expired')
})

test('a session planted in the browser ends when a person signs in', async () => {
  const [attacker, victim] = [await enterAs(stage), visitor()]
  await victim.signUp('victim@far.test')
  const planted = attacker.cookies.get(cookie)!
  victim.cookies.set(cookie, planted)
  await victim.signIn('victim@far.test')
  assert.notEqual(victim.cookies.get(cookie), planted)
  victim.cookies.set(cookie, 'A'.repeat(43))
  await victim.signIn('victim@far.test')
  assert.notEqual(victim.cookies.get(cookie), 'A'.repeat(43))
  // This was the browser's former session, which signing in ends. A node may know a session for up to 1 s longer.
  stage.clock.advance(2_000)
  await attacker.want('/session', { status: 204 })
})

test('a change needs our page’s origin and its token', async () => {
  const visitors = await enterAs(stage)
  const rename = (headers: Record<string, string>) =>
    visitors.call('/person', { method: 'PATCH', body: { name: 'Renamed' }, headers })
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'x-posthorn-token': 'wrong' },
    { 'x-posthorn-token': '' },
  ] as Record<string, string>[]) {
    const { status, body } = await rename(headers)
    assert.deepEqual([status, body.error], [403, 'wrong_origin'], JSON.stringify(headers))
  }
  assert.equal((await rename({})).status, 200)
})

test('a new password needs the old one, and ends the other sessions', async () => {
  const here = await enterAs(stage)
  const { email } = here.session!.person
  const there = visitor()
  await there.signIn(email)
  await visitor().post('/resets', { email })
  const token = await lastToken(stage, email)
  const change = (body: object) => here.call('/person/password', { method: 'PUT', body })
  assert.equal((await change({ password: 'a brand new password' })).status, 401)
  assert.equal((await change({ current: 'wrong', password: 'a brand new password' })).status, 401)
  assert.equal((await change({ current: password, password: 'short' })).status, 400)
  assert.equal((await change({ current: password, password: 'a brand new password' })).status, 204)
  assert.equal((await here.call('/session')).status, 200)
  assert.equal((await there.call('/session')).status, 204)
  assert.equal((await visitor().post('/session', { email, password })).status, 401)
  assert.equal((await visitor().post('/resets/complete', { token, password })).body.error, 'link_expired')
  await visitor().signIn(email, 'a brand new password')
})

test('letters to people belong to the service’s own organization, and reach no other', async () => {
  const rows = await stage.db.query(`select b.display_name, b.local_part, b.domain, o.name, o.status
    from inbox b join organization o on o.id = b.organization_id where b.display_name like 'Posthorn%'`)
  assert.deepEqual(rows, [
    {
      display_name: 'Posthorn at inbox.test',
      local_part: 'accounts',
      domain: 'inbox.test',
      name: 'Posthorn',
      status: 'active',
    },
  ])
  const { api } = await stage.createCaller()
  const taken = await api.call('/v1/inboxes', { method: 'POST', body: { localPart: 'accounts' } })
  assert.equal(taken.body.error, 'reserved_local_part')
})

test('the log has no passwords and links', () => {
  for (const word of [password, 'confirm#', 'reset#']) assert.ok(!stage.log().includes(word), word)
})
