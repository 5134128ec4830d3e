// Tests how many letters people can make the service send: invitations are limited, and no kind uses up another's share.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { silentLog } from '../../../src/base/log.ts'
import { SecretBox } from '../../../src/base/secret-box.ts'
import {
  changeOrganizationStatus,
  createOrganization,
  defaultLimits,
} from '../../../src/flow/accounts/organization.ts'
import { LetterLimits } from '../../../src/flow/people/letter-limits.ts'
import { invitationLetter, resetLetter } from '../../../src/flow/people/letters.ts'
import { sendOrganizationLetters } from '../../../src/flow/people/organization-letters.ts'
import { Post } from '../../../src/flow/people/post.ts'
import { setStage } from '../stage.ts'
import { enterAs, enterDirectly, join, lettersTo, type Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const hourMs = 3_600_000
let invited = 0

/** Invites from a new network each time, so that only the limits per person and per organization apply. */
async function invite(owner: Visitor) {
  const email = `invited-${++invited}@far.test`
  const headers = { 'x-forwarded-for': `198.${18 + (invited >> 8)}.${invited & 255}.1` }
  const body = { email, role: 'member' }
  return { email, ...(await owner.call<{ id: string }>('/invitations', { method: 'POST', body, headers })) }
}

async function inviteUntilRefused(owner: Visitor) {
  const sent: string[] = []
  for (;;) {
    const { status, body, email, headers } = await invite(owner)
    if (status !== 201) return { sent, status, error: (body as unknown as { error: string }).error, headers }
    sent.push(email)
    // Withdrawing an invitation does not restore the allowance.
    await owner.call(`/invitations/${body.id}`, { method: 'DELETE' })
    assert.ok(sent.length <= 60, 'no end of invitations')
  }
}

/** Moves the clock to the start of an hour, so that no window ends during the test. */
function toNextHour(): void {
  stage.clock.advance(hourMs - (stage.clock.nowMs() % hourMs) + 1)
}

test('hostile 19: an organization sends 20 invitations an hour and 50 a day, withdrawn or not', async () => {
  stage.clock.advance(24 * hourMs - (stage.clock.nowMs() % (24 * hourMs)) + 1)
  const { organizationId } = await stage.createCaller()
  const counts: number[] = []
  for (let hour = 0; hour < 3; hour++) {
    // A new owner asks each hour, so only the limit per organization applies.
    const refused = await inviteUntilRefused(await enterDirectly(stage, organizationId))
    assert.deepEqual([refused.status, refused.error], [429, 'too_many_attempts'])
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
    assert.equal((await lettersTo(stage, refused.sent.at(-1)!)).length, 1)
    counts.push(refused.sent.length)
    toNextHour()
  }
  assert.deepEqual(counts, [20, 20, 10])
})

test('hostile 19: a person sends 20 invitations an hour over all their organizations', async () => {
  const [one, other] = [await stage.createCaller(), await stage.createCaller()]
  const owner = await enterDirectly(stage, one.organizationId)
  await join(stage, other, owner.session!.person as never, 'owner')
  // By then the service reads again which organizations a person is in.
  toNextHour()
  assert.equal((await inviteUntilRefused(owner)).sent.length, 20)
  const body = { organizationId: other.organizationId }
  await owner.want('/session/organization', { method: 'PUT', body })
  assert.equal((await invite(owner)).status, 429)
  // Another owner in that organization has a separate allowance.
  assert.equal((await invite(await enterDirectly(stage, other.organizationId))).status, 201)
})

test('hostile 19: a network sends 40 invitations an hour over all its people', async () => {
  toNextHour()
  const from = { 'x-forwarded-for': '203.0.113.77' }
  const statuses: number[] = []
  for (let n = 0; n < 3; n++) {
    const owner = await enterDirectly(stage, (await stage.createCaller()).organizationId)
    for (let i = 0; i < 15; i++) {
      const body = { email: `network-${n}-${i}@far.test`, role: 'member' }
      statuses.push((await owner.call('/invitations', { method: 'POST', body, headers: from })).status)
    }
  }
  assert.deepEqual([statuses.filter((status) => status === 201).length, statuses.at(-1)], [40, 429])
})

/** Returns a post with its own shares, and the addresses it has written to. */
function collectingPost() {
  const { db, clock } = stage
  const sent: string[] = []
  const post = new Post({
    db,
    clock,
    log: silentLog,
    managedDomain: 'inbox.test',
    limits: defaultLimits,
    letterLimits: new LetterLimits({ db, clock, secretBox: new SecretBox(randomBytes(32)) }),
    sendOwn: async (_from, { to }) => {
      sent.push(to)
      return { status: 'accepted', submissionId: '' as never }
    },
  })
  return { post, sent }
}

const operatorMail = 'chief@far.test'

function lettersBy(post: Post) {
  const links = { pages: 'https://mail.example.com', desk: 'http://127.0.0.1:8026/#/approvals' }
  return () => sendOrganizationLetters({ db: stage.db, post, operatorMail, links })
}

async function askFrom(ip: string, count: number): Promise<void> {
  const person = await enterAs(stage)
  person.ip = ip
  for (let n = 0; n < count; n++)
    await person.want('/organizations', { method: 'POST', status: 201, body: { name: `Asks ${n}` } })
}

test('a network has 5 requests an hour mailed to the operator, each once, and neighbours have their own', async () => {
  toNextHour()
  const { post, sent } = collectingPost()
  const send = lettersBy(post)
  for (let people = 0; people < 3; people++) await askFrom('203.0.113.90', 3)
  await send()
  await send()
  assert.deepEqual(sent, Array(5).fill(operatorMail))
  await askFrom('198.51.100.90', 1)
  await send()
  assert.equal(sent.length, 6)
  toNextHour()
  await askFrom('203.0.113.90', 1)
  await send()
  assert.equal(sent.length, 7)
})

test('a flood of requests delays neither other letters nor an approval', async () => {
  const { db, clock } = stage
  toNextHour()
  const { post, sent } = collectingPost()
  const send = lettersBy(post)
  const input = { name: 'Flood', status: 'pending' as const, limits: defaultLimits }
  for (let n = 0; n < 40; n++) await createOrganization({ db, clock }, input)
  await db.query(`update organization set letter_due = 'request' where name = 'Flood'`)
  await send()
  assert.deepEqual(sent, Array(30).fill(operatorMail))
  await post.send('someone@far.test', resetLetter('link'))
  const owner = await enterAs(stage)
  await owner.want('/organizations', { method: 'POST', status: 201, body: { name: 'Last' } })
  const [last] = await db.query<{ id: string }>(`select id from organization where name = 'Last'`)
  await changeOrganizationStatus({ db, clock }, last!.id, 'active')
  await send()
  assert.deepEqual(sent.slice(30), ['someone@far.test', owner.session!.person.email])
  clock.advance(60_000)
  await send()
  assert.deepEqual(sent.slice(32), Array(10).fill(operatorMail))
})

test('hostile 19: used-up invitations do not delay letters that let people in again', async () => {
  const { post, sent } = collectingPost()
  const invitation = invitationLetter(
    { organizationName: 'A', invitedBy: 'a@far.test', role: 'member' },
    'link',
  )
  const sendAll = async () => {
    for (let n = 0; n < 1_000; n++) await post.send(`n${n}@far.test`, invitation)
  }
  toNextHour()
  await assert.rejects(sendAll(), { code: 'unavailable' })
  assert.equal(sent.length, 150)
  await post.send('someone@far.test', resetLetter('link'))
  assert.equal(sent.at(-1), 'someone@far.test')
})
