// A destination queue has one owner: what an earlier one claimed or sent does not count, and what it left is taken up. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import type { SubmissionId } from '../../src/base/ids.ts'
import type { Role } from '../../src/config/settings.ts'
import { returnPathOf } from '../../src/mail/return-path.ts'
import { Db } from '../../src/postgres/db.ts'
import { joinNodes } from '../../src/store/nodes.ts'
import { claimDeliveries, type DeliveryResult, recordResults } from '../../src/store/sending/deliveries.ts'
import { RoundRobin } from '../../src/store/sending/round-robin.ts'
import {
  findAmong,
  findOrphaned,
  reclaimOrphans,
  routeLeases,
  walkQueues,
} from '../../src/store/sending/routes.ts'
import type { Api, Inbox } from '../support/api.ts'
import { DnsServer } from '../support/dns-server.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, type Place, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

interface Stage {
  place: Place
  sink: Sink
  env: Record<string, string>
  node: TestNode
  api: Api
  inbox: Inbox
}

type Running = Omit<Stage, 'api' | 'inbox'>

async function start(roles?: Role[]): Promise<Running> {
  const place = await makePlace({ after })
  const sink = await startSink(place)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  return { place, sink, env, node: await startNode(place, { env, ...(roles && { roles }) }) }
}

/** The first accepts and does nothing else. The second does everything. */
const [accepting, sending] = [await start(['api']), await start()]

/** An organization of its own, and a sink that has nothing and answers as usual. */
async function setStage({ place, sink, env, node }: Running): Promise<Stage> {
  sink.rule = () => null
  await until('earlier lines to be closed', () => sink.open === 0)
  sink.copies = []
  const { api } = await node.createCaller()
  return { place, sink, env, node, api, inbox: await api.createInbox() }
}

/** The same with a queue that nobody has had, and where nothing waits. */
async function setQueueStage(): Promise<Stage> {
  const { db } = accepting.node.foundation
  await db.query('delete from delivery')
  await db.query(
    'update route set owner = null, epoch = 0, lease_until = null, paused = false, not_before = null',
  )
  return await setStage(accepting)
}

const local = await makePlace({ after })
/** It takes mail for our own domains. Others send it there: they can be lost, and their results with them. */
const taking = await startNode(local, { roles: ['mx', 'api', 'jobs'] })

let localSender: TestNode | null = null

/** The node that sends there, unless it is up. */
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

/** One more node, which sends; it has stopped when the test ends. */
async function startSender(t: TestContext, place: Place, env: Record<string, string>): Promise<TestNode> {
  const sender = await startNode(place, { env, roles: ['delivery'] })
  t.after(() => sender.stop())
  return sender
}

const leaseMs = 15_000
const nowhere = { smtp: null, capture: null, mark: null, program: null }

/** Takes over what it finds: among the queues named, or in a walk through all of them. */
async function acquire(db: Db, nodeId: number, among: string[] | null = null) {
  const at = new Date()
  const find = async () => {
    const { candidates } = await walkQueues(db, nodeId, at, { from: null, max: 100 })
    return [...candidates, ...(await findOrphaned(db, nodeId))]
  }
  const found = among ? await findAmong(db.writer, nodeId, at, among) : await find()
  const keys = found.map(({ key }) => key)
  return await routeLeases.acquire(db.writer, { nodeId, leaseMs }, at, keys)
}

/** Acquires once the server has seen the end of the earlier owner's connection. */
async function takeOver(db: Db, nodeId: number) {
  return await until('the lock to have fallen', async () => (await acquire(db, nodeId))[0])
}

function delivered(claim: { submissionId: SubmissionId; position: number }, epoch: number): DeliveryResult {
  const told = { type: 'delivered', at: new Date(), attempt: 1, remote: null, enhancedStatus: null }
  return {
    submissionId: claim.submissionId,
    position: claim.position,
    route: '@relay',
    epoch,
    status: 'delivered',
    dueAt: null,
    response: '250 ok',
    failureCode: null,
    outcome: { ...told, classification: null, queuedAt: null, beganAt: null, conversation: null },
  }
}

test('check 93: under an epoch that has passed nothing is claimed, recorded, renewed or let go', async (t) => {
  const { node, api, inbox } = await setQueueStage()
  const { db } = node.foundation
  const { submission } = await send(api, inbox, ['a@far.test', 'b@far.test'])
  const [first, second] = [await joinNodes(db, nowhere, new Date()), await joinNodes(db, nowhere, new Date())]
  t.after(() => second.leave())
  const [route] = await acquire(db, first.id)
  assert.deepEqual([route!.key, route!.epoch], ['@relay', 1])
  assert.deepEqual(await acquire(db, second.id), [])
  assert.deepEqual(await acquire(db, second.id, ['@relay']), [])
  const claim = (epoch: number, wanted: number) =>
    claimDeliveries(
      db.writer,
      { route: '@relay', epoch, wanted, passedOver: [], rounds: new RoundRobin() },
      new Date(),
    )
  const [claimed] = await claim(1, 1)
  assert.equal(claimed!.attempts, 1)

  // Its lock falls, as at a kill -9: the queue is taken over at once, whatever is left of the lease.
  await first.leave()
  const taken = await takeOver(db, second.id)
  assert.deepEqual([taken.key, taken.epoch], ['@relay', 2])
  assert.equal(await reclaimOrphans(db.writer, taken, new Date()), 1)
  assert.deepEqual(await claim(1, 5), [])
  assert.deepEqual(await recordResults(db.writer, [delivered(claimed!, 1)], new Date()), [false])
  assert.deepEqual(await routeLeases.renew(db.writer, first.id, [route!], leaseMs), [])
  await routeLeases.release(db.writer, first.id, route!)
  assert.equal((await routeLeases.renew(db.writer, second.id, [taken], leaseMs)).length, 1)
  await routeLeases.release(db.writer, second.id, { key: '@relay', epoch: 1 })
  assert.equal((await routeLeases.renew(db.writer, second.id, [taken], leaseMs)).length, 1)

  const again = await claim(2, 5)
  assert.deepEqual(again.map(({ attempts }) => attempts).sort(), [1, 2])
  const both = again.map((one) => delivered(one, 2))
  assert.deepEqual(await recordResults(db.writer, both, new Date()), [true, true])
  assert.deepEqual(await recordResults(db.writer, both, new Date()), [false, false])
  await untilStates(api, submission.id, 'delivered', 'delivered')
  const { events } = await api.want<{ events: { type: string }[] }>(`/v1/submissions/${submission.id}/events`)
  assert.deepEqual(
    events.map(({ type }) => type),
    ['accepted', 'attempted', 'delivered', 'delivered'],
  )
})

test('check 93: what a killed owner left on a paused queue is given back, so that it can be cancelled', async (t) => {
  const { node, api, inbox } = await setQueueStage()
  const { db } = node.foundation
  await send(api, inbox, ['a@far.test'])
  const [first, second] = [await joinNodes(db, nowhere, new Date()), await joinNodes(db, nowhere, new Date())]
  t.after(() => second.leave())
  await acquire(db, first.id)
  const claim = { route: '@relay', epoch: 1, wanted: 5, passedOver: [], rounds: new RoundRobin() }
  await claimDeliveries(db.writer, claim, new Date())
  await db.query('update route set paused = true')
  await first.leave()
  const route = await takeOver(db, second.id)
  assert.equal(await reclaimOrphans(db.writer, route, new Date()), 1)
  await routeLeases.release(db.writer, second.id, route)
  assert.deepEqual(await acquire(db, second.id), [])
})

test('check 96: mail accepted by one node goes out at once through another, though older mail there waits for hours', async (t) => {
  const { place, env, sink, node, api, inbox } = await setQueueStage()
  await startSender(t, place, env)
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 greylisted' : null)
  const waiting = await send(api, inbox, ['slow@far.test'])
  await untilStates(api, waiting.submission.id, 'deferred')
  await node.foundation.db.query(
    `update delivery set due_at = due_at + interval '6 hours' where status = 'deferred'`,
  )
  sink.rule = () => null
  await until('its line to be closed', () => sink.open === 0)
  const startMs = performance.now()
  const { submission } = await send(api, inbox, ['quick@far.test'])
  await untilStates(api, submission.id, 'delivered')
  assert.ok(performance.now() - startMs < 5_000)
})

test('check 91: a node that stops hands over what it has not sent, and nothing is sent twice', async (t) => {
  const { place, env, sink, node, api, inbox } = await setStage(sending)
  const other = await startSender(t, place, env)
  sink.rule = async ({ stage }) =>
    stage === 'rcpt' ? new Promise((done) => setTimeout(done, 20, null)) : null
  const sent = await Promise.all(Array.from({ length: 80 }, (_, i) => send(api, inbox, [`r${i}@far.test`])))
  await until('some to be delivered', () => sink.copies.length > 10)
  await other.stop()
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
  for (const { message } of sent) assert.equal(sink.copiesOf(message.internetMessageId).length, 1)
  const [row] = await node.foundation.db.query<{ nodes: number }>('select count(*) as nodes from node')
  assert.equal(row!.nodes, 1)
})

test('check 93: two nodes over one queue deliver each message once, while peers hang up after each', async (t) => {
  const { place, env, sink, node, api, inbox } = await setStage(sending)
  await startSender(t, place, env)
  // A peer that takes one message a connection: each line ends with a result still on its way to the database.
  let taken = 0
  sink.rule = ({ stage }) => (stage === 'mail' && ++taken % 2 === 0 ? '421 4.7.0 one is enough' : null)
  const sent = await Promise.all(Array.from({ length: 60 }, (_, i) => send(api, inbox, [`r${i}@far.test`])))
  await until('everything to be delivered', async () => {
    node.foundation.clock.advance(60_000)
    await node.foundation.db.query('update route set not_before = null')
    await node.foundation.db.query(
      `update delivery set due_at = created.at from (select now() as at) created where status = 'deferred'`,
    )
    return sink.copies.length >= sent.length
  })
  for (const { submission } of sent) await untilStates(api, submission.id, 'delivered')
  for (const { message } of sent) assert.equal(sink.copiesOf(message.internetMessageId).length, 1)
})

// The last one at the node that does everything: it leaves a long queue behind.
test('check 49: one organization with 2,000 waiting does not delay another on the same queue', async (t) => {
  const { sink, node, api, inbox } = await setStage(sending)
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

test('what a node does not know: the lock of another database is none of ours', async (t) => {
  const { node, api, inbox } = await setQueueStage()
  const { db } = node.foundation
  await send(api, inbox, ['a@far.test'])
  const [dead, alive] = [await joinNodes(db, nowhere, new Date()), await joinNodes(db, nowhere, new Date())]
  t.after(() => alive.leave())
  const there = await makePlace(t)
  const foreign = new Db({ connection: there.connection })
  there.after(() => foreign.close())
  await foreign.query(`select setval('node_id', $1, false)`, [dead.id])
  const namesake = await joinNodes(foreign, nowhere, new Date())
  there.after(() => namesake.leave())
  assert.equal(namesake.id, dead.id)
  assert.equal((await acquire(db, dead.id)).length, 1)
  await dead.leave()
  assert.equal((await takeOver(db, alive.id)).epoch, 2)
})

/** Within less than the 15 s after which a statement that waits for a lock gives up. */
async function untilRenewed(db: Db, route: string): Promise<void> {
  const read = async () => {
    const [row] = await db.query<{ until: Date }>(
      'select lease_until as until from route where key = $1 and owner is not null',
      [route],
    )
    return row?.until.getTime() ?? 0
  }
  const beforeMs = await read()
  await until(`the lease of ${route} to be renewed`, async () => (await read()) > beforeMs, {
    timeoutMs: 12_000,
  })
}

// A node of its own: it sends to each domain by itself.
test('check 93: a queue is not let go of before its results are recorded, however long that takes', async (t) => {
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
  // A short transaction would be ended while it waits for all this.
  const copies = await db.longTransaction('begin', async (tx) => {
    // Results are recorded in groups: those of this queue hold up the ones that come after them.
    await tx.query('select from submission where id = any($1::uuid[]) for update', [
      blocking.map(({ submission }) => submission.id),
    ])
    release()
    await untilLocked(db)
    const { submission, message } = await send(api, inbox, ['someone@one.test'])
    await until('it to arrive', () => one.copies.length > 0)
    await until('its line to end', () => one.open === 0)
    // A take-over has its time meanwhile, and this node keeps what is its own.
    for (const _ of [1, 2]) await untilRenewed(db, 'slow.test')
    return { submission, count: () => one.copiesOf(message.internetMessageId).length }
  })
  await untilStates(api, copies.submission.id, 'delivered')
  assert.equal(copies.count(), 1)
})

// The first with mail for our own domains: nobody sends there yet.
test('a stranger who has the return path of a delivery, or none, neither keeps it out nor has mail taken for known', async () => {
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
  assert.match(recipients[0]!.response!, /^250 2\.0\.0 Ok: kept as /)
  await until('the mail to be filed', async () => (await db.query('select from spool')).length === 0)
  const subjects = (await listReceived()).map(({ subject }) => subject)
  assert.deepEqual(subjects.sort(), ['Test', ...Array.from({ length: 4 }, () => 'not yours')])
})

test('mail for our own domains finds the node that takes it, when another one sends', async () => {
  const { api, inbox } = await setLocalStage()
  await startLocalSender()
  const { submission } = await send(api, inbox, [inbox.address])
  await untilStates(api, submission.id, 'delivered')
})

/** Loses results as a kill between the receiver's 250 and their commit does, until it is undone. */
async function loseResults(db: Db): Promise<() => Promise<unknown>> {
  await db.query(`create function lose() returns trigger language plpgsql as 'begin return null; end'`)
  await db.query(`create trigger lose before update on delivery for each row
    when (new.status = 'delivered') execute function lose()`)
  return () => db.query('drop trigger lose on delivery')
}

test('check 31: mail between our own inboxes is there once, though the result of its delivery was lost', async () => {
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
    () => first.log().split('a result came after the lease was lost').length > sent.length,
  )
  await first.stop()
  localSender = null
  await keepResults()
  await startLocalSender()
  for (const { submission } of sent) {
    const { recipients } = await untilStates(api, submission.id, 'delivered')
    assert.equal(recipients[0]!.response, '250 2.0.0 Ok: kept before')
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
