// Incoming mail: who gets it, what is stored, which thread it joins, and how faults are handled. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, renameSync, rmSync, symlinkSync, truncateSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { newUuid, type SubmissionId } from '../../src/base/ids.ts'
import type { Role } from '../../src/config/settings.ts'
import { fileSpooled } from '../../src/flow/receiving/file.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import { returnPathOf } from '../../src/mail/return-path.ts'
import { findRaw } from '../../src/store/mailbox/raws.ts'
import { insertReceived, readSpool } from '../../src/store/mailbox/spool.ts'
import type { Api, Inbox, Message } from '../support/api.ts'
import { joinAsNode } from '../support/claims.ts'
import { makePlace, type Place, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { stuff, Wire } from '../support/wire.ts'

interface Stage {
  place: Place
  node: TestNode
  api: Api
  /** Rows by table, and blobs, from before the test. */
  before: { rows: Map<string, number>; blobs: string[] }
}

async function start(roles?: Role[]): Promise<Pick<Stage, 'place' | 'node'>> {
  const place = await makePlace({ after })
  const node = await startNode(place, { env: { POSTHORN_DELIVERY: 'capture' }, ...(roles && { roles }) })
  return { place, node }
}

/** The first node files mail by itself, with the right time. For the second, tests file the mail and move the clock. */
const [filing, spooling] = [await start(), await start(['api', 'mx'])]

const tables = ['raw', 'spool', 'message', 'thread', 'submission', 'delivery', 'captured_mail', 'kept_mail']

/** An organization of its own at one of the nodes. */
async function setStage({ place, node } = filing): Promise<Stage> {
  const rows = new Map<string, number>()
  for (const table of tables) rows.set(table, await countAll(node, table))
  const before = { rows, blobs: listBlobs(place) }
  return { place, node, api: (await node.createCaller()).api, before }
}

/** Sends one message to several recipients. Returns the replies to each RCPT and, if any was 250, to the message. */
async function deliver(
  node: TestNode,
  to: string[],
  raw: string | Buffer,
  from = 'someone@far.test',
): Promise<string[]> {
  const socket = connect({ ...node.smtp, noDelay: true })
  const wire = new Wire(socket)
  const ask = async (words: string | Buffer) => {
    await wire.write(words)
    return (await wire.reply()) ?? 'lost'
  }
  try {
    await wire.reply()
    await ask('EHLO sender.test\r\n')
    await ask(`MAIL FROM:<${from}>\r\n`)
    const replies: string[] = []
    for (const address of to) replies.push(await ask(`RCPT TO:<${address}>\r\n`))
    if (!replies.some((reply) => reply.startsWith('250'))) return replies
    await ask('DATA\r\n')
    return [...replies, await ask(stuff(Buffer.from(raw)))]
  } finally {
    socket.destroy()
  }
}

function mail(fields: Record<string, string>, body = 'Hello.'): string {
  const all = { From: 'someone@far.test', Subject: 'Test', ...fields }
  return `${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${body}\r\n`
}

async function messagesOf(api: Api, { id }: Inbox, count: number): Promise<Message[]> {
  return await until(`${count} messages`, async () => {
    const messages = await api.exported(id)
    return messages.length >= count ? messages : null
  })
}

async function countAll({ foundation }: TestNode, table: string): Promise<number> {
  const [row] = await foundation.db.query<{ count: number }>(`select count(*) as count from ${table}`)
  return row!.count
}

/** Counts the table's new rows since the stage was set. */
async function count({ node, before }: Stage, table: string): Promise<number> {
  return (await countAll(node, table)) - before.rows.get(table)!
}

function listBlobs({ folder }: Place): string[] {
  const blobs = join(folder, 'blobs')
  return existsSync(blobs)
    ? (readdirSync(blobs, { recursive: true }) as string[]).filter((name) => name.includes('/'))
    : []
}

/** The blobs added since the stage was set. */
const blobsIn = ({ place, before }: Stage) => listBlobs(place).filter((name) => !before.blobs.includes(name))

const bound = { share: 1, mails: 1e6, bytes: 1e9 }
const noBounds = { operator: bound, feedback: bound, return_path: bound }

/** Returns a function that files the spool on demand only. */
function makeFiler(
  scope: Scope,
  { node }: Stage,
  poison?: string,
  log = node.foundation.log,
): () => Promise<boolean> {
  const { db, clock, blobs } = node.foundation
  const pool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  scope.after(() => pool.close())
  const parsePool = {
    parse: async (raw: Buffer) => {
      if (poison && raw.includes(poison)) throw new Error('there is no reading this')
      return await pool.parse(raw)
    },
  }
  const joined = joinAsNode(scope, node.foundation).then(({ claims }) => claims('mail'))
  return async () => await fileSpooled({ db, clock, log, blobs, parsePool, claims: await joined }, 64)
}

test('check 13: one envelope for two organizations becomes a message for each, with its own recipients', async () => {
  const stage = await setStage()
  const other = await stage.node.createCaller()
  const [mine, theirs] = [await stage.api.createInbox('mine'), await other.api.createInbox('theirs')]
  const to = [
    'mine+a@inbox.test',
    'THEIRS@inbox.test',
    'Mine+b@inbox.test',
    'nobody@inbox.test',
    'x@elsewhere.test',
  ]
  const replies = await deliver(stage.node, to, mail({ 'Message-ID': '<one@far.test>', To: 'list@far.test' }))
  assert.deepEqual(
    replies.map((reply) => reply.slice(0, 9)),
    ['250 2.1.5', '250 2.1.5', '250 2.1.5', '550 5.1.1', '550 5.7.1', '250 2.0.0'],
  )
  const [ours] = await messagesOf(stage.api, mine, 1)
  const [their] = await messagesOf(other.api, theirs, 1)
  assert.notEqual(ours!.id, their!.id)
  const source = (await stage.api.bytes(`/v1/messages/${ours!.id}/source`)).toString()
  assert.match(
    source,
    /^Return-Path: <someone@far.test>\r\nDelivered-To: mine\+a@inbox.test\r\nDelivered-To: Mine\+b@inbox.test\r\n/,
  )
  assert.doesNotMatch(source, /theirs/i)
  const otherSource = (await other.api.bytes(`/v1/messages/${their!.id}/source`)).toString()
  assert.match(otherSource, /\r\nDelivered-To: THEIRS@inbox.test\r\n/)
  assert.doesNotMatch(otherSource, /mine/i)
  assert.equal((await stage.api.call(`/v1/messages/${their!.id}`)).status, 404)
  assert.deepEqual([await count(stage, 'raw'), await count(stage, 'message')], [1, 2])
})

test('check 14: mail from <> is accepted, and never answered, not even on request', async () => {
  const stage = await setStage()
  const inbox = await stage.api.createInbox('bounced')
  const raw = mail({
    From: 'Mail Delivery System <mailer-daemon@far.test>',
    'Message-ID': '<notice@far.test>',
    'Return-Receipt-To': 'asks@far.test',
    'Disposition-Notification-To': 'asks@far.test',
    'Reply-To': 'asks@far.test',
    Subject: 'Undelivered Mail Returned to Sender',
  })
  const to = [inbox.address, 'nobody@inbox.test']
  assert.deepEqual(
    (await deliver(stage.node, to, raw, '')).map((reply) => reply.slice(0, 9)),
    ['250 2.1.5', '550 5.1.1', '250 2.0.0'],
  )
  const [message] = await messagesOf(stage.api, inbox, 1)
  const source = (await stage.api.bytes(`/v1/messages/${message!.id}/source`)).toString()
  assert.match(source, /^Return-Path: <>\r\n/)
  // Mail sent after this arrives, and nothing else does.
  const { submission } = await send(stage.api, inbox, ['someone@far.test'])
  await untilStates(stage.api, submission.id, 'delivered')
  const tables = ['submission', 'delivery', 'captured_mail', 'spool', 'message']
  assert.deepEqual(await Promise.all(tables.map((table) => count(stage, table))), [1, 1, 1, 0, 2])
})

test('check 17: a mail sent again after a lost 250 is stored twice, each time whole', async () => {
  const stage = await setStage()
  const inbox = await stage.api.createInbox('again')
  const raw = mail({ 'Message-ID': '<again@far.test>' })
  for (let i = 0; i < 2; i++)
    await sendMail(stage.node.smtp, { from: 'a@far.test', to: inbox.address, raw: Buffer.from(raw) })
  const messages = await messagesOf(stage.api, inbox, 2)
  assert.deepEqual(
    messages.map(({ internetMessageId, text }) => [internetMessageId, text]),
    [0, 1].map(() => ['<again@far.test>', 'Hello.\n']),
  )
})

test('check 23: mail in a loop is refused', async () => {
  const stage = await setStage()
  await stage.api.createInbox('loop')
  const hops = (n: number) =>
    `${'Received: from a by b; Sat, 21 Nov 2026 10:00:00 +0000\r\n'.repeat(n)}${mail({})}`
  const answer = async (raw: string, to = 'loop@inbox.test') =>
    (await deliver(stage.node, [to], raw)).at(-1)!.slice(0, 9)
  assert.equal(await answer(hops(50)), '250 2.0.0')
  assert.equal(await answer(hops(51)), '554 5.4.6')
  assert.equal(await answer(mail({ 'Delivered-To': 'Loop@inbox.test' })), '554 5.4.6')
  assert.equal(await answer(mail({ 'Delivered-To': 'other@inbox.test' })), '250 2.0.0')
  assert.equal(await answer(mail({}, 'Delivered-To: loop@inbox.test')), '250 2.0.0')
})

test('check 48: a genuine return path is accepted, and a forged one is unknown', async () => {
  // Without the role that reads reports.
  const stage = await setStage(spooling)
  const { clock, secretBox } = stage.node.foundation
  const make = (host: string) =>
    returnPathOf(secretBox, { submissionId: newUuid<SubmissionId>(), position: 0 }, host, clock.now())
  const code = async (to: string) => (await deliver(stage.node, [to], mail({}), ''))[0]!.slice(0, 9)
  const address = make('inbox.test')
  assert.equal(await code(address.toUpperCase().replace('INBOX.TEST', 'inbox.test')), '250 2.1.5')
  assert.equal(await code(address.replace(/.@/, (end) => (end === 'a@' ? 'b@' : 'a@'))), '550 5.1.1')
  assert.equal(await code(make('other.test').replace('other.test', 'inbox.test')), '550 5.1.1')
  assert.equal(await code('bounce-@inbox.test'), '550 5.1.1')
  clock.advance(31 * 86_400_000)
  assert.equal(await code(address), '550 5.1.1')
  assert.equal(await count(stage, 'kept_mail'), 1)
})

test('check 66: a message joins its nearest known ancestor in its inbox, and none by subject', async () => {
  const stage = await setStage()
  const [inbox, elsewhere] = [await stage.api.createInbox('here'), await stage.api.createInbox('elsewhere')]
  const steps: [id: string, fields: Record<string, string>, joins: string | null][] = [
    ['root', {}, null],
    ['same-subject', { Subject: 'Re: Test' }, null],
    ['child', { 'In-Reply-To': '<root@far.test>' }, 'root'],
    [
      'by-references',
      { References: '<root@far.test> <same-subject@far.test> <lost@far.test>' },
      'same-subject',
    ],
    ['parent-first', { 'In-Reply-To': '<root@far.test>', References: '<same-subject@far.test>' }, 'root'],
    ['itself', { 'In-Reply-To': '<itself@far.test>', References: '<itself@far.test>' }, null],
    ['grandchild', { 'In-Reply-To': '<unknown@far.test>', References: '<child@far.test>' }, 'root'],
  ]
  const threads = new Map<string, string>()
  for (const [index, [id, fields, joins]] of steps.entries()) {
    await deliver(stage.node, ['here@inbox.test'], mail({ 'Message-ID': `<${id}@far.test>`, ...fields }))
    const message = (await messagesOf(stage.api, inbox, index + 1)).at(-1)!
    assert.equal(message.internetMessageId, `<${id}@far.test>`)
    if (joins) assert.equal(message.threadId, threads.get(joins), `${id} joins ${joins}`)
    else assert.ok(![...threads.values()].includes(message.threadId), `${id} begins a thread`)
    threads.set(id, message.threadId)
  }
  await deliver(stage.node, ['elsewhere@inbox.test'], mail({ 'In-Reply-To': '<root@far.test>' }))
  const [foreign] = await messagesOf(stage.api, elsewhere, 1)
  assert.ok(![...threads.values()].includes(foreign!.threadId))
  const thread = await stage.api.want<{ messageCount: number; messages: Message[] }>(
    `/v1/threads/${threads.get('root')}`,
  )
  assert.equal(thread.messageCount, 4)
  assert.equal(thread.messages.length, 4)
})

test('mail is filed exactly once, by two filers and after a repeated reception', async (t) => {
  const stage = await setStage(spooling)
  const inbox = await stage.api.createInbox('busy')
  const file = [makeFiler(t, stage), makeFiler(t, stage)]
  const sent = Array.from({ length: 120 }, (_, i) =>
    mail({ 'Message-ID': `<m${i}@far.test>`, ...(i > 0 && { 'In-Reply-To': `<m${i % 3}@far.test>` }) }),
  )
  for (const raw of sent.slice(0, 3)) await deliver(stage.node, ['busy@inbox.test'], raw)
  await file[0]!()
  await Promise.all(sent.slice(3).map((raw) => deliver(stage.node, ['busy@inbox.test'], raw)))
  const { db, clock } = stage.node.foundation
  const [waiting] = await db.query<{ id: string }>('select id from spool order by due_at limit 1')
  const taken = await readSpool(db, [waiting!.id])
  const [{ id, organizationId, inboxId, envelope, receivedAt, rawId }] = taken as [(typeof taken)[number]]
  while ((await Promise.all(file.map((run) => run()))).some((isMore) => isMore));
  const again = { raw: (await findRaw(db, rawId))!, receivedAt, kept: [], delivery: null }
  const row = { id, organizationId, inboxId, envelope }
  const receiveAgain = async () => {
    const received = [{ ...again, inboxes: [row] }]
    assert.deepEqual(await db.transaction((tx) => insertReceived(tx, received, noBounds, clock.now())), [
      'stored',
    ])
    await file[0]!()
  }
  await receiveAgain()
  const messages = await stage.api.exported(inbox.id)
  assert.equal(new Set(messages.map(({ internetMessageId }) => internetMessageId)).size, 120)
  assert.equal(messages.length, 120)
  const threads = await db.query<{ counted: number; messages: number }>(
    `select t.message_count as messages, (select count(*) from message m where m.thread_id = t.id) as counted from thread t`,
  )
  for (const { messages, counted } of threads) assert.equal(messages, counted)
  assert.equal(await count(stage, 'spool'), 0)

  // A second run may come after the message was deleted, and does not bring it back.
  await stage.api.want(`/v1/messages/${id}`, { method: 'DELETE', status: 204 })
  await receiveAgain()
  assert.equal((await stage.api.exported(inbox.id)).length, 119)
  assert.deepEqual([await count(stage, 'spool'), await count(stage, 'raw')], [0, 119])
})

test('a conversation filed together becomes one thread in any order, apart from unrelated mail', async (t) => {
  const stage = await setStage(spooling)
  const inbox = await stage.api.createInbox('talk')
  const file = makeFiler(t, stage)
  const parents = {
    reply: 'parent',
    alone: 'lost',
    parent: 'root',
    further: 'reply',
    root: '',
    egg: 'hen',
    hen: 'egg',
  }
  for (const [id, parent] of Object.entries(parents)) {
    const fields = { 'Message-ID': `<${id}@far.test>`, 'In-Reply-To': `<${parent}@far.test>`, Subject: id }
    await deliver(stage.node, ['talk@inbox.test'], mail({ ...fields, Cc: `${id}@far.test, ${id}@far.test` }))
  }
  assert.equal(await file(), false)
  const messages = await stage.api.exported(inbox.id)
  const { db } = stage.node.foundation
  const threads = await db.query<{ id: string; subject: string; participants: string[]; count: number }>(
    'select id, subject, participants, message_count as count from thread where inbox_id = $1',
    [inbox.id],
  )
  const talks = threads.map((thread) => {
    const subjects = messages.filter(({ threadId }) => threadId === thread.id).map(({ subject }) => subject)
    assert.deepEqual([thread.subject, thread.count], [subjects[0], subjects.length])
    const others = thread.participants.filter((email) => email.endsWith('@far.test')).toSorted()
    assert.deepEqual(
      others,
      ['someone@far.test', ...subjects.map((subject) => `${subject}@far.test`)].toSorted(),
    )
    return subjects.toSorted().join(' ')
  })
  assert.deepEqual(talks.toSorted(), ['alone', 'egg hen', 'further parent reply root'])
})

test('check 97: a mail that cannot be filed waits, delays no other, and is finally shown as text', async (t) => {
  const stage = await setStage(spooling)
  const inbox = await stage.api.createInbox('poison')
  const file = makeFiler(t, stage, 'Poison')
  for (const subject of ['Poison', 'Small 1', 'Small 2'])
    await deliver(stage.node, ['poison@inbox.test'], mail({ Subject: subject }, `${subject}.\r\n`))
  await file()
  assert.equal((await stage.api.exported(inbox.id)).length, 2)
  assert.equal(await file(), false)
  for (let failures = 2; failures <= 6; failures++) {
    stage.node.foundation.clock.advance(70_000)
    await file()
  }
  const messages = await stage.api.exported(inbox.id)
  assert.equal(messages.length, 3)
  assert.match(messages[2]!.text, /^Poison\./)
  assert.match(String(await noteOf(stage, messages[2]!)), /plain text/)
})

test('check 97: a mail whose bytes are unreachable waits for them, however long, and is filed whole', async (t) => {
  const stage = await setStage(spooling)
  const inbox = await stage.api.createInbox('large')
  const file = makeFiler(t, stage)
  const html = `<p>${'x'.repeat(70)}</p>\r\n`.repeat(5_000)
  const fields = { Subject: 'Large', 'Content-Type': 'text/html' }
  await deliver(stage.node, ['large@inbox.test'], mail(fields, html))
  await deliver(stage.node, ['large@inbox.test'], mail({ Subject: 'Small' }))
  const { clock } = stage.node.foundation
  const folder = join(stage.place.folder, 'blobs')
  const fileOften = async () => {
    for (let round = 0; round < 8; round++) {
      await file()
      clock.advance(70_000)
    }
    assert.equal((await stage.api.exported(inbox.id)).length, 1)
  }
  renameSync(folder, `${folder}.away`)
  await fileOften()
  renameSync(`${folder}.away`, folder)
  const blob = join(folder, blobsIn(stage)[0]!)
  renameSync(blob, `${blob}.away`)
  // Other disk faults do not mean that the file is missing either.
  symlinkSync(blob, blob)
  await fileOften()
  renameSync(`${blob}.away`, blob)
  await file()
  const messages = await stage.api.exported(inbox.id)
  assert.equal(messages.length, 2)
  assert.ok(messages[1]!.html)
  assert.equal(await noteOf(stage, messages[1]!), null)
})

test('check 97: a mail whose bytes are lost is finally filed without text, and says so', async (t) => {
  const stage = await setStage(spooling)
  const inbox = await stage.api.createInbox('lost')
  const lines: string[] = []
  const file = makeFiler(
    t,
    stage,
    undefined,
    pino({ level: 'error' }, { write: (line) => void lines.push(line) }),
  )
  const body = `${'x'.repeat(70)}\r\n`.repeat(5_000)
  for (const subject of ['Missing', 'Shorter'])
    await deliver(stage.node, ['lost@inbox.test'], mail({ Subject: subject }, body))
  await deliver(stage.node, ['lost@inbox.test'], mail({ Subject: 'Small' }))
  const { clock, db } = stage.node.foundation
  const [missing, shorter] = blobsIn(stage).map((name) => join(stage.place.folder, 'blobs', name))
  rmSync(missing!)
  truncateSync(shorter!, 300_000)
  for (let failures = 1; failures <= 5; failures++) {
    while (await file());
    const rows = await db.query('select failures from spool where inbox_id = $1', [inbox.id])
    assert.deepEqual(rows, Array(2).fill({ failures }))
    clock.advance(70_000)
  }
  while (await file());
  const messages = await stage.api.exported(inbox.id)
  assert.equal(messages.length, 3)
  for (const message of messages.slice(1)) {
    assert.equal(message.text, '')
    assert.equal(message.from.email, 'someone@far.test')
    assert.match(String(await noteOf(stage, message)), /bytes are lost/)
  }
  assert.equal(lines.filter((line) => line.includes('bytes of a mail are lost')).length, 2)
})

async function noteOf({ node }: Stage, { id }: { id: string }): Promise<string | null> {
  const [row] = await node.foundation.db.query<{ note: string | null }>(
    'select filing_note as note from message where id = $1',
    [id],
  )
  return row!.note
}

test('a node files its own received mail from memory, and reads back another node’s', async (t) => {
  const texts = []
  for (const receiving of [filing, spooling]) {
    const stage = await setStage(receiving)
    const { db } = stage.node.foundation
    const inbox = await stage.api.createInbox('memory')
    // The database gets other bytes, which shows where the bytes that are read come from.
    await db.query(`create function other() returns trigger language plpgsql as
      $$ begin new.bytes := overlay(new.bytes placing 'other' from position('first' in new.bytes)); return new; end $$`)
    t.after(() => db.query('drop function other cascade'))
    await db.query('create trigger other before insert on raw for each row execute function other()')
    await deliver(stage.node, ['memory@inbox.test'], mail({}, 'first'))
    if (receiving === spooling) await makeFiler(t, stage)()
    texts.push((await messagesOf(stage.api, inbox, 1))[0]!.text)
  }
  assert.deepEqual(texts, ['first\n', 'other\n'])
})

test('one claim holds at most its bytes of mail, and at least one mail', async (t) => {
  const stage = await setStage(spooling)
  await stage.api.createInbox('heavy')
  for (let i = 0; i < 4; i++) await deliver(stage.node, ['heavy@inbox.test'], mail({}, 'y'.repeat(900)))
  const claims = (await joinAsNode(t, stage.node.foundation)).claims('mail')
  const taken = async (maxBytes: number) => {
    const { claim, ids, isMore } = (await claims.take({ limit: 10, maxBytes }))!
    await claims.giveBack(claim, ids)
    return [ids.length, isMore]
  }
  assert.deepEqual(await taken(10_000), [4, false])
  assert.deepEqual(await taken(2_500), [2, true])
  assert.deepEqual(await taken(10), [1, true])
  // Leaves no waiting mail to the next test.
  await makeFiler(t, stage)()
})

test('check 77: mail whose inbox is deleted before filing is deleted too, with its bytes', async (t) => {
  const stage = await setStage(spooling)
  const inbox = await stage.api.createInbox('brief')
  const large = mail({}, 'z'.repeat(70).concat('\r\n').repeat(5_000))
  for (const raw of [mail({}), large]) await deliver(stage.node, ['brief@inbox.test'], raw)
  assert.equal(blobsIn(stage).length, 1)
  await stage.api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  await until('the address to be gone', async () => {
    return (await deliver(stage.node, ['brief@inbox.test'], mail({}))).at(-1)!.startsWith('550 5.1.1')
  })
  await makeFiler(t, stage)()
  for (const table of ['spool', 'raw', 'message', 'thread']) assert.equal(await count(stage, table), 0, table)
  assert.deepEqual(blobsIn(stage), [])
})

test('check 22: a large message is kept in a blob, reads back unchanged, and goes with its last message', async () => {
  const stage = await setStage()
  const inboxes = [await stage.api.createInbox('one'), await stage.api.createInbox('two')]
  for (let round = 0; round < 8; round++) {
    const body = Array.from({ length: 9_000 }, (_, i) => `..${i} é ${'=20'.repeat(i % 20)}`).join('\r\n')
    const raw = Buffer.from(mail({ 'X-Round': String(round) }, body), 'latin1')
    await deliver(stage.node, ['one@inbox.test', 'two@inbox.test'], raw)
    const messages = await Promise.all(inboxes.map((inbox) => messagesOf(stage.api, inbox, 1)))
    assert.equal(blobsIn(stage).length, 1)
    for (const [message] of messages) {
      const source = await stage.api.bytes(`/v1/messages/${message!.id}/source`)
      assert.deepEqual(source.subarray(-raw.length), raw)
    }
    // Both at the same time: neither may rely on the other to delete the bytes.
    const gone = messages.map(([message]) =>
      stage.api.call(`/v1/messages/${message!.id}`, { method: 'DELETE' }),
    )
    assert.deepEqual(
      (await Promise.all(gone)).map(({ status }) => status),
      [204, 204],
    )
    assert.equal(await count(stage, 'raw'), 0)
    assert.deepEqual(blobsIn(stage), [])
  }
})

test('check 76: an export during writes has every message once', async () => {
  const stage = await setStage()
  const inbox = await stage.api.createInbox('export')
  let isOver = false
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let i = 0; i < 30; i++)
      await deliver(stage.node, ['export@inbox.test'], mail({ 'Message-ID': `<${writer}-${i}@far.test>` }))
  })
  const writing = Promise.all(writers).then(() => (isOver = true))
  const seen: string[] = []
  for (let cursor = ''; !isOver || seen.length < 120; ) {
    const path = `/v1/inboxes/${inbox.id}/export?limit=7${cursor && `&cursor=${cursor}`}`
    const page = await stage.api.want<{ messages: Message[]; nextCursor: string | null }>(path)
    // Without a next cursor, the page is read again from its start. Only its new messages count.
    seen.push(...page.messages.map(({ id }) => id).filter((id) => !seen.includes(id)))
    cursor = page.nextCursor ?? cursor
  }
  await writing
  assert.equal(seen.length, 120)
  assert.deepEqual(
    seen,
    (await stage.api.exported(inbox.id)).map(({ id }) => id),
  )
})
