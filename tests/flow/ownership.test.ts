// Several nodes send: each message once, whoever owns its queue; mail for our domains is delivered. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { SubmissionId } from '../../src/base/ids.ts'
import { returnPathOf } from '../../src/mail/return-path.ts'
import type { Db } from '../../src/postgres/db.ts'
import { DnsServer } from '../support/dns-server.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const sink = await startSink(place)
const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
const node = await startNode(place, { env })

/** An organization of its own, and a sink without copies that answers as usual. */
async function setStage() {
  sink.rule = () => null
  await until('earlier lines to be closed', () => sink.open === 0)
  sink.copies = []
  const { api } = await node.createCaller()
  return { api, inbox: await api.createInbox() }
}

const local = await makePlace({ after })
/** Receives mail for our own domains. Other nodes send to it: they can be lost, and their results with them. */
const taking = await startNode(local, { roles: ['mx', 'api', 'jobs'] })

let localSender: TestNode | null = null

/** Starts the node that sends to the receiving node, unless it is up. */
async function startLocalSender(): Promise<TestNode> {
  return (localSender ??= await startNode(local, { roles: ['delivery'] }))
}

async function setLocalStage() {
  const { api } = await taking.createCaller()
  const inbox = await api.createInbox()
  const listReceived = async () =>
    (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
  return { api, inbox, listReceived }
}

let partner: TestNode | null = null

/** Starts a second sender next to the node that has every role, unless it is up. */
async function startPartner(): Promise<TestNode> {
  return (partner ??= await startNode(place, { env, roles: ['delivery'] }))
}

test('check 93: two nodes deliver each message of a queue once, while peers hang up after each', async () => {
  const { api, inbox } = await setStage()
  const other = await startPartner()
  // A peer that takes one message per connection: each connection ends while its result is still being recorded.
  let taken = 0
  sink.rule = ({ stage }) => (stage === 'mail' && ++taken % 2 === 0 ? '421 4.7.0 one is enough' : null)
  const sent = await Promise.all(Array.from({ length: 60 }, (_, i) => send(api, inbox, [`r${i}@far.test`])))
  await until('everything to be delivered', async () => {
    for (const { foundation } of [node, other]) foundation.clock.advance(60_000)
    await node.foundation.db.query('update route set not_before = null')
    await node.foundation.db.query(
      // Rows that a sender records now are left for the next turn: two updates in different orders would be a deadlock.
      `update delivery set due_at = now() where ctid = any(array(
        select ctid from delivery where status = 'deferred' for update skip locked))`,
    )
    return sink.copies.length >= sent.length
  })
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
  for (const { message } of sent) assert.equal(sink.copiesOf(message.internetMessageId).length, 1)
})

test('check 91: a stopping node hands over its unsent mail, and no mail is sent twice', async () => {
  const { api, inbox } = await setStage()
  const other = await startPartner()
  sink.rule = async ({ stage }) =>
    stage === 'rcpt' ? new Promise((done) => setTimeout(done, 20, null)) : null
  const sent = await Promise.all(Array.from({ length: 80 }, (_, i) => send(api, inbox, [`r${i}@far.test`])))
  await until('some to be delivered', () => sink.copies.length > 10)
  await other.stop()
  partner = null
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
  for (const { message } of sent) assert.equal(sink.copiesOf(message.internetMessageId).length, 1)
  const [row] = await node.foundation.db.query<{ nodes: number }>('select count(*) as nodes from node')
  assert.equal(row!.nodes, 1)
})

// The last test at the node that has every role: it leaves a long queue behind.
test('check 49: one organization with 2,000 waiting mails does not delay another on the same queue', async (t) => {
  const { api, inbox } = await setStage()
  t.after(() => node.stop())
  sink.rule = ({ stage }) => (stage === 'banner' ? '421 4.3.2 closed' : null)
  const to = Array.from({ length: 1_000 }, (_, i) => `r${i}@far.test`)
  await send(api, inbox, to)
  await send(api, inbox, to)
  const other = await node.createCaller()
  const single = await send(other.api, await other.api.createInbox(), ['single@far.test'])
  let before = 0
  sink.rule = async ({ stage, command }) => {
    if (stage === 'rcpt' && command.includes('single@')) before = sink.copies.length
    if (stage === 'message') await new Promise((done) => setTimeout(done, 10))
    return null
  }
  await node.foundation.db.query('update route set not_before = null')
  await untilStates(other.api, single.submission.id, 'delivered')
  assert.ok(before < 200, `${before} went before it`)
})

/** Waits until the node has reported itself. Shorter than 15 s, after which a statement that waits for a lock fails. */
async function untilReported(db: Db): Promise<void> {
  const read = async () => (await db.query<{ at: Date | null }>('select max(seen_at) as at from node'))[0]!.at
  const before = await read()
  const isLater = async () => Number(await read()) > Number(before)
  await until('the node to report itself', isLater, { timeoutMs: 12_000 })
}

// A node of its own: it sends to each domain separately.
test('check 93: a queue is released only after its results are recorded, however long that takes', async (t) => {
  const place = await makePlace(t)
  const one = await startSink(t, { host: '127.0.0.5' })
  const slow = await startSink(t, { host: '127.0.0.6', port: one.port })
  const dns = await DnsServer.start({ 'one.test': { A: [one.host] }, 'slow.test': { A: [slow.host] } })
  place.after(() => dns.close())
  const node = await startNode(place, {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(one.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { db } = node.foundation
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  let release = () => {}
  const held = new Promise<null>((resolve) => (release = () => resolve(null)))
  slow.rule = ({ stage }) => (stage === 'message' ? held : null)
  const blocking = await Promise.all([1, 2, 3].map((n) => send(api, inbox, [`r${n}@slow.test`])))
  await until('them to be on the wire', () => slow.open >= 1)
  // A short transaction would time out while it waits for all this.
  const copies = await db.longTransaction('begin', async (tx) => {
    // Results are recorded in groups. Blocked results of this queue delay the groups after them.
    await tx.query('select from submission where id = any($1::uuid[]) for update', [
      blocking.map(({ submission }) => submission.id),
    ])
    release()
    await untilLocked(db)
    const { submission, message } = await send(api, inbox, ['someone@one.test'])
    await until('it to arrive', () => one.copies.length > 0)
    await until('its line to end', () => one.open === 0)
    // A take-over has enough time meanwhile, and this node keeps its own queues.
    for (const _ of [1, 2, 3]) await untilReported(db)
    return { submission, count: () => one.copiesOf(message.internetMessageId).length }
  })
  await untilStates(api, copies.submission.id, 'delivered')
  assert.equal(copies.count(), 1)
})

// The first test with mail for our own domains: no node sends there yet.
test('a stranger with a delivery’s return path neither blocks it nor has mail dropped as a repeat', async () => {
  const { api, inbox, listReceived } = await setLocalStage()
  const { db, secretBox, clock } = taking.foundation
  const { submission } = await send(api, inbox, [inbox.address])
  const token = { submissionId: submission.id as SubmissionId, position: 0 }
  const returnPath = returnPathOf(secretBox, token, 'inbox.test', clock.now())
  const raw = Buffer.from('From: stranger@far.test\r\nSubject: not yours\r\n\r\nHello.\r\n')
  for (const from of [returnPath, returnPath, '', '']) {
    const { outcome, reply } = await sendMail(taking.smtp, { from, to: inbox.address, raw })
    assert.equal(outcome, 'accepted', reply)
  }
  await startLocalSender()
  const { recipients } = await untilStates(api, submission.id, 'delivered')
  assert.match(recipients[0]!.response!, /^250 2\.0\.0 Ok: queued as /)
  await until('the mail to be filed', async () => (await db.query('select from spool')).length === 0)
  const subjects = (await listReceived()).map(({ subject }) => subject)
  assert.deepEqual(subjects.sort(), ['Test', ...Array.from({ length: 4 }, () => 'not yours')])
})

test('mail for our own domains finds the receiving node from another sending node', async () => {
  const { api, inbox } = await setLocalStage()
  await startLocalSender()
  const { submission } = await send(api, inbox, [inbox.address])
  await untilStates(api, submission.id, 'delivered')
})

/** Loses results, as a kill between the receiver's 250 and the commit does. Call the returned function to undo this. */
async function loseResults(db: Db): Promise<() => Promise<unknown>> {
  await db.query(`create function lose() returns trigger language plpgsql as 'begin return null; end'`)
  await db.query(`create trigger lose before update on delivery for each row
    when (new.status = 'delivered') execute function lose()`)
  return () => db.query('drop trigger lose on delivery')
}

test('check 31: mail between our own inboxes is stored once, though its delivery’s result was lost', async () => {
  const { api, inbox, listReceived } = await setLocalStage()
  const { db, clock } = taking.foundation
  const startedAt = clock.now()
  const keepResults = await loseResults(db)
  const first = await startLocalSender()
  const text = 'Words.\n'.repeat(50_000)
  const sent = await Promise.all([
    send(api, inbox, [inbox.address]),
    send(api, inbox, [inbox.address], { text }),
    send(api, inbox, ['postmaster@inbox.test']),
  ])
  await until(
    'their results to be lost',
    () => first.log().split('result arrived after the lease was lost').length > sent.length,
  )
  await first.stop()
  localSender = null
  await keepResults()
  await startLocalSender()
  for (const { submission } of sent) {
    const { recipients } = await untilStates(api, submission.id, 'delivered')
    assert.equal(recipients[0]!.response, '250 2.0.0 Ok: already queued')
  }
  await until('the mail to be filed', async () => (await db.query('select from spool')).length === 0)
  const received = await listReceived()
  assert.deepEqual(
    received.map(({ internetMessageId }) => internetMessageId).sort(),
    sent
      .slice(0, 2)
      .map(({ message }) => message.internetMessageId)
      .sort(),
  )
  assert.equal((await db.query('select from kept_mail where received_at >= $1', [startedAt])).length, 1)
  const files = await readdir(join(local.folder, 'blobs'), { recursive: true })
  assert.equal(files.filter((name) => /[0-9a-f-]{36}$/.test(name)).length, 1)
})
