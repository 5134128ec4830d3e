// The bounds of receiving: per organization and UTC day, for the service's own addresses, and by free disk space.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { after, beforeEach, test } from 'node:test'
import { type InboxId, newId, newUuid, type OrganizationId, type SubmissionId } from '../../src/base/ids.ts'
import { silentLog } from '../../src/base/log.ts'
import { defaultLimits } from '../../src/flow/accounts/organization.ts'
import type { Letter } from '../../src/flow/people/letters.ts'
import { Post } from '../../src/flow/people/post.ts'
import { dropOldMail } from '../../src/flow/reports/read-report.ts'
import { insertReceived, type KeptBounds, type ReceivedMail } from '../../src/store/mailbox/spool.ts'
import {
  type CallerOptions,
  makePlace,
  send,
  startNode,
  type TestCaller,
  type TestNode,
  untilStates,
} from '../support/node.ts'
import { Sender } from '../support/transaction.ts'
import { until } from '../support/until.ts'

const tooMuch = '452 4.2.2'
const taken = ['250 2.1.5', '250 2.0.0']

const env = { POSTHORN_DELIVERY: 'capture', POSTHORN_MAIL_HOST: 'mx.dep.test' }
const node = await startNode(await makePlace({ after }), { env })

/** Trusts no peer, and reads no reports. */
const strict = await startNode(await makePlace({ after }), {
  env: { POSTHORN_DELIVERY: 'capture', POSTHORN_SMTP_TRUSTED: '192.0.2.1' },
  roles: ['api', 'mx', 'delivery'],
})

let from = ''

/** Each test starts without mail for the service, with a sender who never sent a mail that is too large. */
beforeEach(async () => {
  from = `${randomUUID()}@far.test`
  await node.foundation.db.query('delete from kept_mail')
  forget(node)
})

const receiving = (messages: number, bytes = 2 ** 40): CallerOptions => ({
  limits: { receivedMessagesPerDay: messages, receivedBytesPerDay: bytes },
})

/** Sends a mail of about that size. Returns the codes of the replies to each RCPT and to the message. */
async function mail(node: TestNode, to: string[], bytes = 100, announced = false): Promise<string[]> {
  return await new Sender(node.smtp).send({
    to,
    from,
    raw: `Subject: x\r\n\r\n${'x'.repeat(bytes)}\r\n`,
    announced,
  })
}

async function usageOf({ foundation }: TestNode, { organizationId }: TestCaller) {
  const [row] = await foundation.db.query<{ messages: number; bytes: number }>(
    'select messages, bytes from received_usage where organization_id = $1',
    [organizationId],
  )
  return row!
}

/** Counts the mails stored since then. */
async function storedSince(at: Date): Promise<number> {
  return (await node.foundation.db.query('select from raw where created_at >= $1', [at])).length
}

/** Nodes cache addresses for up to one second. */
const forget = ({ foundation }: TestNode) => foundation.clock.advance(1_001)

test('hostile 12: the daily message limit is exact under parallel mail, and starts again at midnight', async () => {
  const caller = await node.createCaller(receiving(20))
  const [one, two] = [await caller.api.createInbox(), await caller.api.createInbox()]
  const replies = await Promise.all(
    Array.from({ length: 50 }, (_, i) => mail(node, [i % 2 ? one.address : two.address])),
  )
  const answers = replies.map((reply) => reply.at(-1)!)
  assert.equal(answers.filter((reply) => reply === '250 2.0.0').length, 20)
  assert.equal(answers.filter((reply) => reply === tooMuch).length, 30)
  assert.equal((await usageOf(node, caller)).messages, 20)
  forget(node)
  assert.deepEqual(await mail(node, [one.address]), [tooMuch])
  const { clock } = node.foundation
  clock.advance(86_400_000 - (clock.nowMs() % 86_400_000) - 500)
  assert.deepEqual(await mail(node, [one.address]), [tooMuch])
  clock.advance(1_500)
  assert.deepEqual(await mail(node, [one.address]), taken)
  assert.equal((await usageOf(node, caller)).messages, 1)
})

test('hostile 12: each inbox has its daily bytes counted, and an announced excess is refused at RCPT', async () => {
  const caller = await node.createCaller(receiving(1_000, 10_000))
  const [one, two] = [await caller.api.createInbox(), await caller.api.createInbox()]
  assert.deepEqual(await mail(node, [one.address, two.address], 3_000), ['250 2.1.5', ...taken])
  const { bytes } = await usageOf(node, caller)
  assert.ok(bytes > 6_000 && bytes < 6_100)
  forget(node)
  assert.deepEqual(await mail(node, [one.address], 5_000, true), [tooMuch])
  assert.deepEqual(await mail(node, [one.address], 5_000), ['250 2.1.5', tooMuch])
  assert.deepEqual(await mail(node, [one.address], 3_000, true), taken)
  assert.equal((await caller.api.want<{ limits: object }>('/v1/me')).limits, undefined)
  assert.doesNotMatch(JSON.stringify(await caller.api.want('/v1/me')), /received/)
})

test('hostile 12: the bytes of kept received mail are bounded, and a deletion makes room at once', async () => {
  const startedAt = node.foundation.clock.now()
  const caller = await node.createCaller({ limits: { storedBytes: 10_000 } })
  const inbox = await caller.api.createInbox()
  const filed = async () => await caller.api.exported(inbox.id)
  assert.deepEqual(await mail(node, [inbox.address], 6_000), taken)
  assert.deepEqual(await mail(node, [inbox.address], 6_000), ['250 2.1.5', tooMuch])
  await until('it to be filed', async () => (await filed()).length === 1)
  // A new day changes nothing.
  node.foundation.clock.advance(86_400_000)
  assert.deepEqual(await mail(node, [inbox.address], 6_000, true), [tooMuch])
  assert.equal(await storedSince(startedAt), 1)
  const [first] = await filed()
  await caller.api.want(`/v1/messages/${first!.id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual(await mail(node, [inbox.address], 6_000), taken)
  assert.deepEqual(await mail(node, [inbox.address], 6_000), ['250 2.1.5', tooMuch])
})

test('hostile 12: one organization at its limit costs another no mail, and no 250 is false', async () => {
  const startedAt = node.foundation.clock.now()
  const [full, other] = [await node.createCaller(receiving(1)), await node.createCaller()]
  const [theirs, ours] = [await full.api.createInbox(), await other.api.createInbox()]
  const { organizationId } = full
  assert.deepEqual(await mail(node, [theirs.address]), taken)
  // RCPT now refuses the address, so the other recipients of the envelope get their mail.
  forget(node)
  assert.deepEqual(await mail(node, [theirs.address, ours.address]), [tooMuch, ...taken])
  // The refusal was not known before the dot: no recipient gets the mail, and the sender retries all of them.
  const { db } = node.foundation
  await db.query(`update organization set limits = limits || '{"receivedMessagesPerDay": 2}' where id = $1`, [
    organizationId,
  ])
  forget(node)
  const sender = new Sender(node.smtp)
  const late = await sender.send({
    to: [theirs.address, ours.address],
    raw: 'Subject: late\r\n\r\n',
    beforeDot: async () => assert.deepEqual(await mail(node, [theirs.address]), taken),
  })
  assert.deepEqual(late, ['250 2.1.5', '250 2.1.5', tooMuch])
  await until('the others to be filed', async () => (await other.api.exported(ours.id)).length === 1)
  await until('theirs to be filed', async () => (await full.api.exported(theirs.id)).length === 2)
  assert.equal(await storedSince(startedAt), 3)
})

test('hostile 12: mail to public addresses is bounded in bytes, for each purpose on its own', async () => {
  const inbox = await (await node.createCaller()).api.createInbox()
  const { db, clock } = node.foundation
  assert.deepEqual(await mail(node, ['abuse@inbox.test']), taken)
  await db.query('update kept_mail set size_bytes = (256 << 20) - 1000')
  assert.deepEqual(await mail(node, ['postmaster@inbox.test'], 2_000), ['250 2.1.5', tooMuch])
  forget(node)
  assert.deepEqual(await mail(node, ['postmaster@inbox.test', inbox.address], 2_000, true), [
    ...[tooMuch, ...taken],
  ])
  assert.deepEqual(await mail(node, ['fbl@inbox.test'], 2_000), taken)
  assert.deepEqual(await mail(node, ['postmaster@inbox.test'], 500), taken)
  // Mail that operators have read makes room. Large mail is deleted after a day.
  await db.query('update kept_mail set read_at = received_at')
  forget(node)
  assert.deepEqual(await mail(node, ['postmaster@inbox.test'], 2_000), taken)
  await db.query('update kept_mail set read_at = received_at')
  clock.advance(86_500_000)
  await dropOldMail(node.foundation, 30 * 86_400_000, 10)
  assert.equal((await db.query(`select from kept_mail where purpose = 'operator'`)).length, 2)
  forget(node)
  assert.deepEqual(await mail(node, ['postmaster@inbox.test'], 2_000), taken)
})

// Uses the node that trusts no peer: trusted peers have no share.
test('hostile 12, 26, 27: no stranger removes operators’ unread mail, or uses other networks’ room', async () => {
  const { db, clock } = strict.foundation
  const [reporter, stranger] = ['127.0.1.1', '127.0.0.2'].map((from) => new Sender(strict.smtp, from)) as [
    Sender,
    Sender,
  ]
  const report = { to: ['abuse@inbox.test'], raw: 'Subject: you are spammed from\r\n\r\n' }
  assert.deepEqual(await reporter.send(report), taken)
  const tagged = Array.from({ length: 100 }, (_, i) => `postmaster+${i}@inbox.test`)
  for (let i = 0; i < 12; i++) {
    const replies = await stranger.send({ to: tagged, raw: `Subject: ${i}\r\n\r\n` })
    assert.deepEqual(replies.at(-1), '250 2.0.0')
  }
  const rows = () =>
    db.query<{ id: string; recipients: number }>(
      `select id, jsonb_array_length(envelope->'recipients') as recipients from kept_mail order by received_at, id`,
    )
  assert.deepEqual(
    (await rows()).map(({ recipients }) => recipients),
    [1, ...Array(12).fill(100)],
  )

  await db.query(
    `insert into kept_mail (id, purpose, address, network, raw_id, size_bytes, envelope, received_at)
    select k.id || n, purpose, address, network, raw_id, size_bytes, envelope, received_at
    from (select * from kept_mail order by received_at desc limit 1) k, generate_series(1, 1200) n`,
  )
  forget(strict)
  assert.deepEqual(await stranger.send(report), [tooMuch])
  assert.deepEqual(await reporter.send(report), taken)
  assert.equal(await dropOldMail(strict.foundation, 30 * 86_400_000, 500), false)
  assert.equal((await rows()).length, 14 + 1200)

  // Only the commit counts mail that arrived since the sender was last counted.
  await db.query(`update kept_mail set read_at = received_at where network = '127.0.0.0/24'`)
  forget(strict)
  const meanwhile = () => db.query(`update kept_mail set read_at = null`) as Promise<unknown>
  assert.deepEqual(await stranger.send({ ...report, beforeDot: async () => void (await meanwhile()) }), [
    ...['250 2.1.5', tooMuch],
  ])
  // Read mail is deleted early, down to the newest 1,000.
  await db.query('update kept_mail set read_at = received_at')
  forget(strict)
  assert.deepEqual(await stranger.send(report), taken)
  assert.equal(await dropOldMail(strict.foundation, 30 * 86_400_000, 500), false)
  assert.equal((await rows()).length, 1_001)
  clock.advance(31 * 86_400_000)
  while (await dropOldMail(strict.foundation, 30 * 86_400_000, 500));
  assert.equal((await rows()).length, 0)
})

test('check 26: two inboxes among a thousand names stay hidden, and our own deliveries are unaffected', async () => {
  const { api } = await strict.createCaller()
  const inboxes = [await api.createInbox(), await api.createInbox()]
  // Our own deliveries share the stranger's address, and none of them counts.
  const nobody = Array.from({ length: 60 }, (_, i) => `nobody${i}@inbox.test`)
  const { submission } = await send(api, inboxes[0]!, nobody)
  await untilStates(api, submission.id, ...nobody.map(() => 'bounced'))
  const stranger = new Sender(strict.smtp)
  assert.deepEqual(await stranger.send({ to: ['nobody@inbox.test'], raw: '' }), ['550 5.1.1'])

  const names = Array.from({ length: 1_002 }, (_, i) => `name${i}@inbox.test`)
  for (const [index, { address }] of inboxes.entries()) names[300 + 300 * index] = address
  const groups = Array.from({ length: 201 }, (_, i) => names.slice(5 * i, 5 * i + 5))
  const heard = new Map<string, number>()
  const guess = async () => {
    for (let to = groups.pop(); to; to = groups.pop())
      for (const reply of await stranger.send({ to, raw: 'Subject: x\r\n\r\n' }))
        heard.set(reply, (heard.get(reply) ?? 0) + 1)
  }
  await Promise.all(Array.from({ length: 30 }, guess))
  assert.ok((heard.get('550 5.1.1') ?? 0) <= 50, JSON.stringify([...heard]))
  assert.equal(heard.get('250 2.1.5'), undefined)
  assert.match(strict.log(), /too many unknown recipients/)

  assert.deepEqual(
    await new Sender(strict.smtp, '127.0.1.2').send({ to: [inboxes[0]!.address], raw: 'x\r\n\r\n' }),
    [...['250 2.1.5', '250 2.0.0']],
  )
  const local = await send(api, inboxes[0]!, [inboxes[1]!.address])
  await untilStates(api, local.submission.id, 'delivered')
})

test('hostile 12: a mail to operators has at most 1 MiB, and other recipients still get it', async () => {
  const inbox = await (await node.createCaller()).api.createInbox()
  const tooLarge = '552 5.3.4'
  const to = ['postmaster@inbox.test', 'abuse@inbox.test']
  assert.deepEqual(await mail(node, to, 2 << 20, true), [tooLarge, tooLarge])
  assert.deepEqual(await mail(node, to, 2 << 20), ['250 2.1.5', '250 2.1.5', tooLarge])
  const all = ['postmaster@inbox.test', inbox.address]
  assert.deepEqual(await mail(node, all, 2 << 20), ['250 2.1.5', '250 2.1.5', tooMuch])
  assert.deepEqual(await mail(node, all, 2 << 20), [tooLarge, ...taken])
})

test('hostile 12: a large mail that is refused for lack of room leaves no file', async () => {
  const caller = await node.createCaller(receiving(1_000, 1_000_000))
  const inbox = await caller.api.createInbox()
  const { db, blobs } = node.foundation
  const listFiles = () =>
    readdirSync(blobs.location, { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile())
      .map(({ name }) => name)
      .sort()
  const files = listFiles()
  await mail(node, ['abuse@inbox.test'])
  await db.query('update kept_mail set size_bytes = (256 << 20) - 1000')
  assert.deepEqual(await mail(node, [inbox.address], 3 << 20), ['250 2.1.5', tooMuch])
  assert.deepEqual(await mail(node, ['postmaster@inbox.test'], 800_000), ['250 2.1.5', tooMuch])
  assert.deepEqual(listFiles(), files)
})

test('hostile 12: a full inbox blocks another’s mail of unannounced size once, and not again', async () => {
  const [small, other] = [await node.createCaller(receiving(1_000, 5_000)), await node.createCaller()]
  const [one, two] = [await small.api.createInbox(), await small.api.createInbox()]
  const ours = await other.api.createInbox()
  assert.deepEqual(await mail(node, [one.address, ours.address], 6_000), ['250 2.1.5', '250 2.1.5', tooMuch])
  assert.deepEqual(await mail(node, [one.address, ours.address], 6_000), [tooMuch, ...taken])
  // There is room for one of two inboxes.
  const all = [one.address, one.address.replace('@', '+x@'), two.address, ours.address]
  assert.deepEqual(await mail(node, all, 3_000, true), ['250 2.1.5', '250 2.1.5', tooMuch, ...taken])
  await until('all to be filed', async () => (await other.api.exported(ours.id)).length === 2)
  assert.equal((await small.api.exported(one.id)).length, 1)
  assert.equal((await small.api.exported(two.id)).length, 0)
})

test('hostile 12: a stored mail stays stored, though its 250 was lost and no room is left', async () => {
  const { foundation, createCaller } = node
  const { api, organizationId } = await createCaller(receiving(1))
  const inbox = await api.createInbox()
  const bounds: KeptBounds = { operator: one, feedback: one, return_path: one }
  const mails = [0, 1, 2].map((number) =>
    received(organizationId as OrganizationId, number === 1 ? null : inbox.id),
  )
  const store = (some: ReceivedMail[]) =>
    insertReceived(foundation.db.writer, some, bounds, foundation.clock.now())
  assert.deepEqual(await store(mails.slice(0, 2)), ['stored', 'stored'])
  assert.deepEqual(await store(mails), ['stored', 'stored', 'over'])
  assert.equal((await usageOf(node, { organizationId } as TestCaller)).messages, 1)
})

test('a delivery that arrives twice at once is stored once, and a refused one is stored on its return', async () => {
  const { foundation, createCaller } = node
  const { api, organizationId } = await createCaller(receiving(1))
  const inbox = await api.createInbox()
  const { submission } = await send(api, inbox, ['a@far.test', 'b@far.test'])
  const comes = (position: number): ReceivedMail => ({
    ...received(organizationId as OrganizationId, inbox.id),
    delivery: { submissionId: submission.id as SubmissionId, position },
  })
  const store = (some: ReceivedMail[]) =>
    insertReceived(
      foundation.db.writer,
      some,
      { operator: one, feedback: one, return_path: one },
      foundation.clock.now(),
    )
  assert.deepEqual(await store([comes(0), comes(0)]), ['stored', 'gone'])
  assert.deepEqual(await store([comes(0), comes(1)]), ['known', 'over'])
  foundation.clock.advance(86_400_000)
  assert.deepEqual(await store([comes(1), comes(0)]), ['stored', 'known'])
})

const one = { mails: 1, bytes: 1_000, share: 1 }

/** A mail to the inbox, or to postmaster. */
function received(organizationId: OrganizationId, inboxId: string | null): ReceivedMail {
  const bytes = Buffer.from('Subject: once\r\n\r\n')
  const tls = { encrypted: false, protocol: 'none', cipher: 'none' }
  const peer = {
    helo: 'sender.test',
    remoteIp: '127.0.0.1',
    tls,
    protocol: 'ESMTP',
    receivedBy: 'mx.test',
  } as const
  const envelope = { from: 'someone@far.test', recipients: ['one@inbox.test'], ...peer }
  const raw = { id: newUuid(), sizeBytes: bytes.length, bytes, blob: null }
  const mail = { raw, receivedAt: new Date(), delivery: null }
  const row = { id: newId('message', Date.now()), envelope }
  const address = 'postmaster@inbox.test'
  return inboxId
    ? { ...mail, inboxes: [{ ...row, organizationId, inboxId: inboxId as InboxId }], kept: [] }
    : {
        ...mail,
        inboxes: [],
        kept: [{ ...row, purpose: 'operator', address, network: null, submissionId: null }],
      }
}

test('hostile 11: mail host and managed domain both have the service’s addresses', async () => {
  for (const domain of ['mx.dep.test', 'inbox.test', 'MX.dep.test']) {
    for (const name of ['fbl', 'abuse', 'postmaster', 'Abuse+tag']) {
      assert.deepEqual(await mail(node, [`${name}@${domain}`]), taken, `${name}@${domain}`)
    }
    assert.deepEqual(await mail(node, [`somebody@${domain}`]), ['550 5.1.1'])
  }
  assert.deepEqual(await mail(node, ['fbl@dep.test']), ['550 5.7.1'])
  const { db, clock } = node.foundation
  // The service writes from an inbox of its own, which has no reader.
  const froms: string[] = []
  const post = new Post({
    db,
    clock,
    log: silentLog,
    managedDomain: 'inbox.test',
    limits: defaultLimits,
    letterLimits: { admit: async () => {} },
    sendOwn: async (from) => {
      froms.push(from)
      return { status: 'refused', code: 'message_too_large' }
    },
  })
  await post.send('someone@far.test', { subject: 'Confirm your address', text: 'By this link.' } as Letter)
  assert.deepEqual(froms, ['accounts@inbox.test'])
  assert.deepEqual(await db.query('select display_name from inbox where local_part = $1', ['accounts']), [
    { display_name: 'Posthorn at inbox.test' },
  ])
  assert.deepEqual(await mail(node, froms), ['550 5.1.1'])
  const kept = await db.query<{ address: string }>(`select address from kept_mail where purpose = 'operator'`)
  assert.equal(kept.length, 9)
  // Mail that is no report is deleted once it was read.
  await until('the reports to be read', async () => (await db.query(`select from kept_mail`)).length === 9)
})

// A node of its own: no disk has as much room as it wants. The process has one gauge, so the other nodes have ended.
test('hostile 12: below the required free disk space no mail is received, and all else goes on', async (t) => {
  await Promise.all([node.stop(), strict.stop()])
  const short = await startNode(await makePlace(t), {
    env: { POSTHORN_DELIVERY: 'capture', POSTHORN_DISK_RESERVE: String(2 ** 39) },
  })
  const { api } = await short.createCaller()
  const inbox = await api.createInbox()
  assert.deepEqual(await mail(short, [inbox.address]), ['452 4.3.1'])
  const { submission } = await api.want<{ submission: { id: string } }>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'disk-reserve-1',
    body: { to: [{ email: 'a@far.test' }], subject: 'Out', text: 'It goes.' },
  })
  await until('it to leave', async () => {
    const { status } = await api.want<{ status: string }>(`/v1/submissions/${submission.id}`)
    return status === 'delivered'
  })
  const { host, port } = short.app.listening.operator
  assert.match(await (await fetch(`http://${host}:${port}/metrics`)).text(), /posthorn_disk_short 1/)
  assert.match(short.log(), /disk is almost full/)
})
