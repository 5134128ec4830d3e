// Tests how the guard counts attempts: free ones, growing waits, what a success clears, and concurrent attempts.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { ServiceError } from '../../../src/base/errors.ts'
import { SecretBox } from '../../../src/base/secret-box.ts'
import { Guard } from '../../../src/flow/people/guard.ts'
import { newToken } from '../../../src/flow/people/tokens.ts'
import { insertToken } from '../../../src/store/people/person-tokens.ts'
import { setStage } from '../stage.ts'
import { enterAs, password, Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const { db, clock } = stage
const secretBox = new SecretBox(randomBytes(32))
const guard = new Guard({ db, clock, secretBox })

/** Returns the seconds the attempt must wait, or 0 if the guard admitted it. */
async function attempt(work: Promise<void>): Promise<number> {
  try {
    await work
    return 0
  } catch (error) {
    assert.ok(error instanceof ServiceError && error.code === 'too_many_attempts', String(error))
    return error.retryAfterSeconds!
  }
}

/** Returns a stopped clock, so that no wait ends while this machine is busy. */
function standingStill(): typeof clock {
  const now = clock.now()
  return { now: () => now } as typeof clock
}

let networks = 0
/** Each address is also in a different larger network. */
const nextIp = () => `10.${++networks}.0.1`

test('check 69a: five attempts at an account are free, and each further one doubles the wait, up to 15 minutes', async () => {
  const at = () => attempt(guard.admit('a@far.test', nextIp()))
  for (let n = 0; n < 5; n++) assert.equal(await at(), 0)
  for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]) {
    assert.equal(await at(), seconds)
    clock.advance(seconds * 1000)
    assert.equal(await at(), 0)
  }
  clock.advance(86_400_001)
  for (let n = 0; n < 5; n++) assert.equal(await at(), 0, 'a day later nothing of it is known')
})

test('a network has twenty free attempts at any accounts, from any address of its /64', async () => {
  const at = (n: number) => attempt(guard.admit(`sprayed-${n}@far.test`, `2001:db8:0:7::${n.toString(16)}`))
  for (let n = 0; n < 20; n++) assert.equal(await at(n), 0)
  for (const seconds of [1, 2, 4]) {
    assert.equal(await at(21), seconds)
    clock.advance(seconds * 1000)
    assert.equal(await at(22), 0)
  }
  assert.equal(await attempt(guard.admit('sprayed-1@far.test', '2001:db8:0:8::1')), 0)
})

test('a larger network has two hundred free attempts, however many networks it contains', async () => {
  const at = (n: number) => attempt(guard.admitNetwork(`2001:db8:9:${n.toString(16)}::1`))
  for (let n = 0; n < 200; n++) assert.equal(await at(n), 0)
  assert.equal(await at(200), 1)
  assert.equal(await attempt(guard.admitNetwork('2001:db8:a::1')), 0)
})

test('a waiting network does not delay an account’s other attempts', async () => {
  const ip = nextIp()
  const still = new Guard({ db, clock: standingStill(), secretBox })
  for (let n = 0; n < 20; n++) await still.admitNetwork(ip)
  for (let n = 0; n < 50; n++) assert.equal(await attempt(still.admit('kept-free@far.test', ip)), 1)
  assert.equal(await attempt(still.admit('kept-free@far.test', nextIp())), 0)
})

test('success clears the account’s attempts, and does not count against the network', async () => {
  const ip = nextIp()
  for (let n = 0; n < 100; n++) {
    await guard.admit('right@far.test', ip)
    await guard.passed('right@far.test', ip)
  }
  for (let n = 0; n < 20; n++) assert.equal(await attempt(guard.admitNetwork(ip)), 0)
  assert.equal(await attempt(guard.admitNetwork(ip)), 1)
})

test('a success now and then allows no additional wrong attempts', async () => {
  const ip = nextIp()
  for (let n = 0; n < 20; n++) await guard.admitNetwork(ip)
  clock.advance(1_000)
  await guard.admit('own@far.test', ip)
  await guard.passed('own@far.test', ip)
  assert.equal(await attempt(guard.admitNetwork(ip)), 0)
  assert.equal(await attempt(guard.admitNetwork(ip)), 2)
})

test('attempts elsewhere do not lock out a network that the account signed in from', async () => {
  const [home, email] = ['198.51.100.7', 'at-home@far.test']
  let nowMs = clock.nowMs()
  // A stopped clock: no wait ends while this machine is busy.
  const still = new Guard({ db, clock: { now: () => new Date(nowMs) } as typeof clock, secretBox })
  const at = (ip: string) => attempt(still.admit(email, ip))
  const lockElsewhere = async () => {
    for (let n = 0; n < 6; n++) await at(nextIp())
    assert.ok((await at(nextIp())) > 0, 'elsewhere the account is locked')
  }
  await still.remember(email, home)
  await lockElsewhere()
  for (let n = 0; n <= 200; n++) await attempt(still.admitNetwork(`198.51.100.${20 + n}`))
  assert.ok((await attempt(still.admit('another@far.test', '198.51.100.8'))) > 0, 'the neighbours are locked')
  for (let n = 0; n < 5; n++) assert.equal(await at(home), 0)
  assert.equal(await at(home), 1, 'at home there are as few attempts as anywhere')
  await still.passed(email, home)
  await lockElsewhere()
  assert.equal(await at(home), 0)
  nowMs += 91 * 86_400_000
  await lockElsewhere()
  assert.ok((await at(home)) > 0, 'a network is forgotten after 90 days')
})

test('parallel attempts count one by one', async () => {
  const still = new Guard({ db, clock: standingStill(), secretBox })
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => attempt(still.admit('together@far.test', nextIp()))),
  )
  assert.equal(answers.filter((seconds) => seconds === 0).length, 5)
})

test('an attempt at a node with a slow clock counts like any other', async () => {
  const ip = nextIp()
  const behind = { now: () => new Date(clock.nowMs() - 5_000) } as typeof clock
  const other = new Guard({ db, clock: behind, secretBox })
  await guard.admitNetwork(ip)
  await other.admitNetwork(ip)
  for (let n = 0; n < 9; n++) {
    await other.admitNetwork(ip)
    await guard.admitNetwork(ip)
  }
  assert.equal(await attempt(guard.admitNetwork(ip)), 1)
})

test('an address gets three letters at once, and then waits up to an hour between them', async () => {
  const may = () => guard.mayWrite('reset', 'letters@far.test')
  assert.deepEqual([await may(), await may(), await may(), await may()], [true, true, true, false])
  for (const minutes of [5, 10, 20, 40, 60, 60]) {
    clock.advance(minutes * 60_000 - 1_000)
    assert.equal(await may(), false, String(minutes))
    clock.advance(1_000)
    assert.equal(await may(), true, String(minutes))
  }
  assert.equal(await guard.mayWrite('confirm', 'letters@far.test'), true)
})

test('counted attempts contain neither addresses nor networks', async () => {
  await guard.admit('secret-name@far.test', '192.0.2.250')
  const subjects = await db.query<{ subject: Buffer }>('select subject from sign_in_failure')
  for (const { subject } of subjects) {
    assert.equal(subject.length, 32)
    assert.ok(!subject.includes('secret') && !subject.includes('192.'))
  }
})

/** Creates a reset link for the address, as a mail would carry it. */
async function linkFor(email: string): Promise<string> {
  const { token, hash } = newToken()
  const [createdAt, expiresAt] = [clock.now(), new Date(clock.nowMs() + 3_600_000)]
  await db.transaction((tx) =>
    insertToken(tx, { hash, purpose: 'reset', personId: null, email, createdAt, expiresAt }),
  )
  return token
}

test('hostile 28: one of 110 parallel uses of a link counts, and others can sign in meanwhile', async () => {
  const attacker = await enterAs(stage)
  const email = 'signs-in-meanwhile@far.test'
  await new Visitor(stage).signUp(email)
  const token = await linkFor(attacker.session!.person.email)
  const headers = { 'x-forwarded-for': '203.0.113.50' }
  const uses = Array.from({ length: 110 }, () =>
    new Visitor(stage).call('/resets/complete', { method: 'POST', body: { token, password }, headers }),
  )
  const signIn = await new Visitor(stage).post('/session', { email, password })
  assert.equal(signIn.status, 200)
  const answers = await Promise.all(uses)
  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1)
  assert.deepEqual(
    [...new Set(statuses)].filter((status) => ![200, 410, 429].includes(status)),
    [],
  )
  assert.ok(
    answers.some(({ body }) => /^Too many attempts/.test(body.message)),
    'its network has to wait',
  )
})
