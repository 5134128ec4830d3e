// Passwords: the content of their strings, which passwords match, and limits that no string can exceed.
import assert from 'node:assert/strict'
import { argon2Sync } from 'node:crypto'
import { test } from 'node:test'
import { Passwords, parsePhc } from './passwords.ts'

const recommended = new Passwords()
const passwords = new Passwords({ memory: 4096, passes: 1, parallelism: 1 })

/** OpenSSL knows the vector of RFC 9106 5.3 without its secret and associated bytes. This one is of the same function. */
const small = {
  salt: Buffer.from('0123456789abcdef'),
  tag: argon2Sync('argon2id', {
    message: 'a password',
    nonce: Buffer.from('0123456789abcdef'),
    parallelism: 1,
    tagLength: 16,
    memory: 64,
    passes: 1,
  }),
}
const unpadded = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
const smallPhc = `$argon2id$v=19$m=64,t=1,p=1$${unpadded(small.salt)}$${unpadded(small.tag)}`

test('a password is hashed by the second recommendation of RFC 9106, with a new salt each time', async () => {
  const [first, second] = [
    await recommended.hash('n', 'correct horse'),
    await recommended.hash('n', 'correct horse'),
  ]
  for (const phc of [first, second])
    assert.match(phc, /^\$argon2id\$v=19\$m=65536,t=3,p=4\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.notEqual(first, second)
  assert.ok(!first.includes('horse'))
  assert.equal(await recommended.isRight('n', 'correct horse', first), true)
  for (const wrong of ['correct Horse', 'correct horse ', '', 'correct hors'])
    assert.equal(await recommended.isRight('n', wrong, first), false, wrong)
})

test('a password matches however its letters are composed', async () => {
  const phc = await passwords.hash('n', 'Zu\u0308rich \uFB01sh')
  assert.equal(await passwords.isRight('n', 'Z\u00fcrich fish', phc), true)
})

test('an account without a password refuses every password, after the same work', async () => {
  const phc = await recommended.hash('n', 'correct horse')
  const timeOf = async (stored: string | null) => {
    const started = process.cpuUsage()
    assert.equal(await recommended.isRight('n', 'wrong', stored), false)
    const { user, system } = process.cpuUsage(started)
    return (user + system) / 1_000
  }
  const median = async (stored: string | null) => {
    const times: number[] = []
    for (let n = 0; n < 5; n++) times.push(await timeOf(stored))
    return times.sort((a, b) => a - b)[2]!
  }
  const [known, unknown] = [await median(phc), await median(null)]
  assert.ok(unknown > known / 2 && unknown < known * 2, `${known} ms and ${unknown} ms`)
})

test('a hash with other costs is checked with those costs', async () => {
  assert.equal(await passwords.isRight('n', 'a password', smallPhc), true)
  assert.equal(await passwords.isRight('n', 'another one', smallPhc), false)
})

const strange: [what: string, phc: string][] = [
  ['nothing', ''],
  ['a password in the clear', 'correct horse'],
  ['another function', smallPhc.replace('argon2id', 'argon2i')],
  ['another version', smallPhc.replace('v=19', 'v=16')],
  ['no passes', smallPhc.replace('t=1', 't=0')],
  ['all the memory there is', smallPhc.replace('m=64', 'm=9999999')],
  ['many passes', smallPhc.replace('t=1', 't=99')],
  ['no salt', `$argon2id$v=19$m=64,t=1,p=1$$${unpadded(small.tag)}`],
  ['no tag', `$argon2id$v=19$m=64,t=1,p=1$${unpadded(small.salt)}$`],
  ['more behind it', `${smallPhc}$`],
]

for (const [what, phc] of strange)
  test(`every password is refused if the stored hash has ${what}`, async () => {
    assert.equal(parsePhc(phc), null)
    assert.equal(await passwords.isRight('n', 'a password', phc), false)
  })

test('few passwords are hashed at a time, and past a hundred waiting others are refused', async () => {
  const running = Array.from({ length: 101 }, (_, n) => passwords.isRight(`n${n}`, 'a password', smallPhc))
  const settled = await Promise.allSettled(running)
  assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 100)
  const [refused] = settled.filter((result) => result.status === 'rejected')
  assert.equal((refused!.reason as { code: string }).code, 'unavailable')
  assert.equal(await passwords.isRight('n', 'a password', smallPhc), true)
})

test('hostile 28: one network fills at most a third of the queue, and others are served', async () => {
  const many = Array.from({ length: 60 }, () => passwords.isRight('one', 'a password', smallPhc))
  const other = passwords.isRight('other', 'a password', smallPhc)
  const settled = await Promise.allSettled(many)
  assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 33)
  assert.equal(await other, true)
})

test('hostile 28: one link hashes a single password at a time', async () => {
  const link = Buffer.from('a digest')
  const settled = await Promise.allSettled([
    passwords.hashOnce(link, 'n', 'a password'),
    passwords.hashOnce(link, 'n', 'a password'),
    passwords.hashOnce(Buffer.from('another'), 'n', 'a password'),
  ])
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.match(await passwords.hashOnce(link, 'n', 'a password'), /^\$argon2id\$/)
})
