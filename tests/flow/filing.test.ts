// Claims by readers: no writer waits, no mail is lost or doubled, a fatal report is set aside. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { newUuid, type SubmissionId } from '../../src/base/ids.ts'
import { meters } from '../../src/base/meters.ts'
import { deleteOrganization } from '../../src/flow/accounts/delete-organization.ts'
import { Claims } from '../../src/flow/claims.ts'
import { fileSpooled } from '../../src/flow/receiving/file.ts'
import { readReports } from '../../src/flow/reports/read-report.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import type { MailBytes } from '../../src/mail/parse-worker.ts'
import { returnPathOf } from '../../src/mail/return-path.ts'
import { Db, DbFault } from '../../src/postgres/db.ts'
import { isNodeLock } from '../../src/store/nodes.ts'
import type { Message } from '../support/api.ts'
import { joinAsNode } from '../support/claims.ts'
import { Door } from '../support/door.ts'
import { openStream } from '../support/event-source.ts'
import { findLeftovers, findMiscounts } from '../support/leftovers.ts'
import { makePlace, startNode } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { tearRow } from '../support/torn-rows.ts'
import { Sender } from '../support/transaction.ts'
import { until } from '../support/until.ts'

/** This node files nothing and reads no reports by itself. */
const place = await makePlace({ after })
const node = await startNode(place, { roles: ['api', 'mx'] })
const { db, clock, secretBox } = node.foundation

const large = Buffer.from(`Subject: Large\r\n\r\n${'x'.repeat(70).concat('\r\n').repeat(5_000)}`)
const small = (subject: string) => Buffer.from(`Subject: ${subject}\r\n\r\nHello.\r\n`)

async function receive(
  node: { smtp: { host: string; port: number } },
  to: string,
  raw: Buffer,
  from = 'a@far.test',
): Promise<void> {
  const sent = await sendMail(node.smtp, { from, to, raw })
  assert.equal(sent.outcome, 'accepted', sent.reply)
}

/** The same reader, whose threads are asked only after `letGo`. `reached` resolves when they would be asked. */
function holdBack<One extends Pick<Reader, 'parsePool'>>(reader: One) {
  const [reached, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const asLetGo = async <Read>(read: () => Promise<Read>) => {
    reached.resolve()
    await free.promise
    return await read()
  }
  const parsePool = {
    parse: (raw: MailBytes) => asLetGo(() => reader.parsePool.parse(raw)),
    report: (raw: MailBytes) => asLetGo(() => reader.parsePool.report(raw)),
  }
  return { ...reader, parsePool, reached: reached.promise, letGo: free.resolve }
}

/** Ends the connection that represents the node, as a kill does, and waits for its end. */
async function loseNode(id: number): Promise<void> {
  await db.query(
    `select pg_terminate_backend(l.pid, 10000) from pg_locks l where ${isNodeLock} and l.objid = $1`,
    [id],
  )
}

/** Reads as a node of its own. */
async function makeReader(t: TestContext) {
  const parsePool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  t.after(() => parsePool.close())
  const { id, claims } = await joinAsNode(t, node.foundation)
  return { ...node.foundation, parsePool, id, claims: claims('mail'), reportClaims: claims('report') }
}

type Reader = Awaited<ReturnType<typeof makeReader>>

test('hostile 10: received and unfiled mail is deleted in steps, and an interruption keeps the finished steps', async () => {
  const { blobs } = node.foundation
  const [{ api, organizationId }, other] = [await node.createCaller(), await node.createCaller()]
  const [inbox, neighbour] = [await api.createInbox(), await other.api.createInbox()]
  for (const { address } of [inbox, neighbour]) await receive(node, address, small('received'))
  await db.query(
    `insert into spool select 'copy_' || n, s.organization_id, s.inbox_id, s.raw_id, s.size_bytes, s.envelope,
      s.received_at, s.failures, s.due_at from spool s, generate_series(1, 1100) n where s.organization_id = $1`,
    [organizationId],
  )
  await db.query(
    `insert into kept_mail (id, purpose, address, organization_id, raw_id, size_bytes, envelope, received_at)
    select s.id, 'return_path', '', s.organization_id, s.raw_id, s.size_bytes, s.envelope, s.received_at
    from spool s where s.organization_id = $1`,
    [organizationId],
  )
  const waiting = async (id: string) => {
    const [row] = await db.query<{ spooled: number; kept: number }>(
      `select (select count(*) from spool where organization_id = $1) as spooled,
        (select count(*) from kept_mail where organization_id = $1) as kept`,
      [id],
    )
    return row!
  }
  assert.deepEqual(await waiting(organizationId), { spooled: 1101, kept: 1101 })
  const stop = new Error('broken off')
  let stepsLeft = Number.POSITIVE_INFINITY
  const breaking = {
    query: db.query.bind(db),
    transaction: async (work: Parameters<typeof db.transaction>[0]) => {
      if (stepsLeft-- === 0) throw stop
      return await db.transaction(work)
    },
  } as unknown as typeof db
  const breakOff = (step: string) => {
    if (step.includes('mail')) stepsLeft = 2
  }
  await assert.rejects(deleteOrganization({ db: breaking, blobs, clock }, organizationId, breakOff), stop)
  assert.deepEqual(await waiting(organizationId), { spooled: 101, kept: 1101 })
  await deleteOrganization(node.foundation, organizationId, () => {})
  assert.deepEqual(await waiting(organizationId), { spooled: 0, kept: 0 })
  assert.deepEqual(await waiting(other.organizationId), { spooled: 1, kept: 0 })
  assert.deepEqual(await findLeftovers(db), [])
})

test('mail for a deleted inbox is dropped instead of filed', async (t) => {
  const { api } = await node.createCaller()
  const [gone, left] = [await api.createInbox(), await api.createInbox()]
  const raw = small('for both').toString()
  const replies = await new Sender(node.smtp).send({ to: [gone.address, left.address], raw })
  assert.equal(replies.at(-1), '250 2.0.0')
  await api.want(`/v1/inboxes/${gone.id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual(await findMiscounts(db), [])
  const reader = await makeReader(t)
  while (await fileSpooled(reader, 64));
  assert.deepEqual(await db.query('select from spool'), [])
  assert.equal((await api.exported(left.id)).length, 1)
  assert.deepEqual(await findMiscounts(db), [])
})

test('mail of a batch is filed in order of arrival, whichever is read faster', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const mails = [
    'Message-ID: <one@far.test>\r\nSubject: One\r\n\r\nOne\r\n',
    'In-Reply-To: <one@far.test>\r\nSubject: Re: One\r\n\r\nTwo\r\n',
  ]
  for (const mail of mails) await receive(node, inbox.address, Buffer.from(mail))
  const reader = await makeReader(t)
  const isRead = Promise.withResolvers<void>()
  const parsePool = {
    parse: async (raw: Buffer) => {
      if (raw.includes('One\r\n\r\nOne')) await isRead.promise
      return await reader.parsePool.parse(raw).finally(isRead.resolve)
    },
  }
  while (await fileSpooled({ ...reader, parsePool }, 64));
  const messages = await api.exported(inbox.id)
  assert.deepEqual(
    messages.map(({ subject }) => subject),
    ['One', 'Re: One'],
  )
  assert.equal(new Set(messages.map(({ threadId }) => threadId)).size, 1)
})

async function countWaiting(): Promise<number> {
  const { values } = await meters.waiting.get()
  return values[0]?.value ?? 0
}

test('waiting: mail that is filed late comes after the messages already read, though received earlier', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const reader = await makeReader(t)
  const follow = (after: string) =>
    api.want<{ messages: Message[] }>(`/v1/inboxes/${inbox.id}/messages?after=${after}&wait=20`)
  await receive(node, inbox.address, small('early'))
  await db.query(`update spool set due_at = $1::timestamptz + interval '1 hour' where inbox_id = $2`, [
    clock.now(),
    inbox.id,
  ])
  await receive(node, inbox.address, small('late'))
  while (await fileSpooled(reader, 64));
  const { messages: first } = await follow('0')
  assert.deepEqual(
    first.map(({ subject }) => subject),
    ['late'],
  )
  const [late] = first
  const following = follow(late!.id)
  await until('it to wait', async () => (await countWaiting()) === 1)
  await db.query('update spool set due_at = $1 where inbox_id = $2', [clock.now(), inbox.id])
  while (await fileSpooled(reader, 64));
  const { messages: next } = await following
  assert.deepEqual(
    next.map(({ subject }) => subject),
    ['early'],
  )
  // A list ordered by time or by id would have skipped it.
  assert.ok(next[0]!.id < late!.id)
})

test('a database outage during filing does not count as the mail’s failure', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  await receive(node, inbox.address, small('after'))
  const door = new Door(place)
  await door.open()
  const behindDoor = new Db({ connection: { connectionString: door.url } })
  t.after(async () => {
    await behindDoor.close()
    await door.shut()
  })
  const [other, reader] = [await makeReader(t), await makeReader(t)]
  const claims = new Claims({ ...reader, db: behindDoor, nodeId: () => reader.id }, 'mail')
  const held = holdBack({ ...reader, db: behindDoor, claims })
  const filing = fileSpooled(held, 64)
  await held.reached
  await door.shut()
  held.letGo()
  await assert.rejects(filing, (error) => error instanceof DbFault && error.kind === 'lost')
  // The reader still holds it, and releases it as soon as it can.
  await fileSpooled(other, 64)
  assert.deepEqual(await api.exported(inbox.id), [])
  await door.open()
  const again = holdBack({ ...reader, db: behindDoor, claims })
  const filingAgain = fileSpooled(again, 64)
  await again.reached
  const waiting = await db.query('select failures from spool where inbox_id = $1', [inbox.id])
  assert.deepEqual(waiting, [{ failures: 0 }])
  again.letGo()
  await filingAgain
  assert.equal((await api.exported(inbox.id)).length, 1)
})

test('mail being filed delays no reader of the outbox, and is filed once if its claim is lost', async (t) => {
  const startedAt = clock.now()
  const { api, secret } = await node.createCaller()
  const inbox = await api.createInbox()
  const { http } = node.app.listening
  const stream = await openStream(t, `http://${http!.host}:${http!.port}`, secret)
  await receive(node, inbox.address, large)
  const [first, second] = [holdBack(await makeReader(t)), await makeReader(t)]
  const held = fileSpooled(first, 64)
  await first.reached
  // Another node skips it. The mail that this node files is announced at once.
  for (let i = 0; i < 3; i++) await receive(node, inbox.address, small(`small ${i}`))
  while (await fileSpooled(second, 64));
  assert.equal((await api.exported(inbox.id)).length, 3)
  await until('it to be announced', () => stream.events.length === 3)
  await loseNode(first.id)
  await until('the mail to be filed by the other', async () => {
    await fileSpooled(second, 64)
    return (await api.exported(inbox.id)).length === 4
  })
  first.letGo()
  await held
  const messages = await api.exported(inbox.id)
  assert.deepEqual(
    messages.map(({ subject }) => subject),
    ['small 0', 'small 1', 'small 2', 'Large'],
  )
  assert.equal((await db.query('select from raw where created_at >= $1', [startedAt])).length, 4)
})

test('reports being read delay no reader of the outbox either, and count once', async (t) => {
  const startedAt = clock.now()
  const token = { submissionId: newUuid<SubmissionId>(), position: 0 }
  await receive(node, returnPathOf(secretBox, token, 'inbox.test', clock.now()), large, '')
  const reader = async () => {
    const { reportClaims, ...reader } = await makeReader(t)
    return { ...reader, claims: reportClaims, reportClaims }
  }
  const [first, second] = [holdBack(await reader()), await reader()]
  const held = readReports(first, 64)
  await first.reached
  assert.equal(await readReports(second, 64), false)
  assert.equal((await db.query('select from kept_mail where received_at >= $1', [startedAt])).length, 1)
  first.letGo()
  assert.equal(await held, false)
  for (const rows of ['kept_mail where received_at >= $1', 'raw where created_at >= $1'])
    assert.deepEqual(await db.query(`select from ${rows}`, [startedAt]), [], rows)
})

test('a mail that cannot be stored waits, and delays no other mail of its batch', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  for (const subject of ['one', 'two', 'three', 'four']) await receive(node, inbox.address, small(subject))
  const reader = await makeReader(t)
  const parsePool = {
    parse: async (raw: Buffer) => {
      const mail = await reader.parsePool.parse(raw)
      // JSON cannot represent this value.
      return raw.includes('two') ? { ...mail, from: { email: 1n as unknown as string } } : mail
    },
  }
  while (await fileSpooled({ ...reader, parsePool }, 64));
  const subjects = async () => (await api.exported(inbox.id)).map(({ subject }) => subject)
  assert.deepEqual(await subjects(), ['one', 'three', 'four'])
  const waiting = await db.query('select failures, claimed_by from spool where inbox_id = $1', [inbox.id])
  assert.deepEqual(waiting, [{ failures: 1, claimed_by: null }])
  clock.advance(5_000)
  await fileSpooled(reader, 64)
  assert.deepEqual(await subjects(), ['one', 'three', 'four', 'two'])
})

test('a torn page holds back only the mail that needs it, for ten seconds', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  for (const subject of ['one', 'two', 'three', 'four']) await receive(node, inbox.address, small(subject))
  const rows = await db.query<{ id: string; raw: string }>(
    'select id, raw_id as raw from spool where inbox_id = $1 order by id',
    [inbox.id],
  )
  const reader = await makeReader(t)
  const heal = tearRow(t, db, 'select id, bytes from raw', rows[1]!.raw)
  while (await fileSpooled(reader, 64));
  const subjects = async () => (await api.exported(inbox.id)).map(({ subject }) => subject)
  assert.deepEqual(await subjects(), ['one', 'three', 'four'])
  const waiting = await db.query('select id, failures, claimed_by from spool where inbox_id = $1', [inbox.id])
  assert.deepEqual(waiting, [{ id: rows[1]!.id, failures: 0, claimed_by: null }])
  heal()
  assert.equal(await fileSpooled(reader, 64), false)
  assert.equal((await subjects()).length, 3)
  clock.advance(10_000)
  await fileSpooled(reader, 64)
  assert.deepEqual(await subjects(), ['one', 'three', 'four', 'two'])
})

test('a torn page holds back only the report that needs it', async (t) => {
  const startedAt = clock.now()
  const token = { submissionId: newUuid<SubmissionId>(), position: 0 }
  for (let n = 0; n < 3; n++)
    await receive(node, returnPathOf(secretBox, token, 'inbox.test', clock.now()), small(`report ${n}`), '')
  const kept = () =>
    db.query<{ id: string; failures: number }>(
      'select id, failures from kept_mail where received_at >= $1 order by id',
      [startedAt],
    )
  const [, torn] = await kept()
  const reader = await makeReader(t)
  const reports = { ...reader, claims: reader.reportClaims }
  const heal = tearRow(t, db, 'from kept_mail k join raw r', torn!.id)
  while (await readReports(reports, 64));
  assert.deepEqual(await kept(), [{ id: torn!.id, failures: 0 }])
  heal()
  clock.advance(10_000)
  await readReports(reports, 64)
  assert.deepEqual(await kept(), [])
})

test('a report that ends the process is set aside after five times, and not read again', async (t) => {
  const startedAt = clock.now()
  await receive(node, 'fbl@inbox.test', small('poison'))
  const reports = (await joinAsNode(t, node.foundation)).claims('report')
  for (let death = 0; death < 5; death++) {
    const { id, claims } = await joinAsNode(t, node.foundation)
    assert.equal((await claims('report').take({ limit: 64, maxBytes: 1 << 20 }))?.ids.length, 1)
    await loseNode(id)
  }
  const reader = await makeReader(t)
  const parsePool = { report: () => assert.fail('it is read') }
  await readReports({ ...reader, parsePool, claims: reports }, 64)
  const sql = 'select purpose, failures from kept_mail where received_at >= $1'
  assert.deepEqual(await db.query(sql, [startedAt]), [{ purpose: 'operator', failures: 6 }])
})
