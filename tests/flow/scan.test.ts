// A real clamd scans attachments: which ones are served, which never are, and how scanning recovers from an outage.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { encryptedSample, nestedSample } from '../../src/scan/samples.ts'
import type { Api, Inbox, Message } from '../support/api.ts'
import { clamdMissing, makeClamd, type TestClamd, virus } from '../support/clamd.ts'
import { openStream } from '../support/event-source.ts'
import { makePlace, type Place, startNode, type TestCaller, type TestNode } from '../support/node.ts'
import { type Scope, until } from '../support/until.ts'
import { stuff, Wire } from '../support/wire.ts'

const skip = clamdMissing

interface Stage {
  place: Place
  node: TestNode
  caller: TestCaller
  api: Api
  inbox: Inbox
  clamd: TestClamd
}

type Running = Pick<Stage, 'place' | 'node' | 'clamd'>

/** A node that scans with a clamd of its own, which is not started yet. */
async function start(scope: Scope, env: Record<string, string> = {}): Promise<Running> {
  const clamd = makeClamd(scope)
  const place = await makePlace(scope)
  return { place, node: await startNode(place, { env: { POSTHORN_CLAMD: clamd.path, ...env } }), clamd }
}

/** The first node's clamd is up. The second node's clamd is down, and its clock is moved. Without clamd, all tests skip. */
const running: Running[] = skip ? [] : [await start({ after }), await start({ after })]
const [shared, waiting] = running
await shared?.clamd.start()

/** An organization of its own with an inbox. */
async function setStage(at = shared): Promise<Stage> {
  const { place, node, clamd } = at!
  const caller = await node.createCaller()
  return { place, node, clamd, caller, api: caller.api, inbox: await caller.api.createInbox() }
}

type File = [name: string, content: Buffer, encoding?: 'base64' | '7bit' | 'quoted-printable']

/** A mail with these attachments. */
function mail(files: File[]): Buffer {
  const parts = files.map(([name, content, encoding = 'base64']) => {
    const disposition = `Content-Disposition: attachment; filename="${name}"`
    const head = `--b\r\nContent-Type: application/octet-stream\r\n${disposition}`
    const body =
      encoding === 'base64' ? content.toString('base64').replace(/.{76}/g, '$&\r\n') : content.toString()
    return `${head}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`
  })
  const head = 'From: a@far.test\r\nSubject: Files\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n'
  return Buffer.from(`${head}--b\r\n\r\nSee the files.\r\n${parts.join('')}--b--\r\n`)
}

/** Sends a mail to the inbox over SMTP. Returns its message once it is filed. */
async function receive({ node, api }: Stage, inbox: Inbox, files: File[]): Promise<Message> {
  const before = (await api.exported(inbox.id)).length
  const socket = connect({ ...node.smtp, noDelay: true })
  const wire = new Wire(socket)
  const words = [
    '',
    'EHLO far.test\r\n',
    'MAIL FROM:<a@far.test>\r\n',
    `RCPT TO:<${inbox.address}>\r\n`,
    'DATA\r\n',
  ]
  for (const word of [...words, stuff(mail(files))]) {
    if (word.length > 0) await wire.write(word)
    assert.match((await wire.reply()) ?? 'lost', /^[23]/)
  }
  socket.destroy()
  const message = await until('the message to be filed', async () => (await api.exported(inbox.id))[before])
  return message
}

const claimedScans = 'select from scan where organization_id = $1 and claimed_by is not null'

const show = (api: Api, { id }: Message) => api.want<Message>(`/v1/messages/${id}`)
const states = ({ attachments = [] }: Message) => attachments.map(({ scanState }) => scanState)
const pathOf = (message: Message, index = 0) =>
  `/v1/messages/${message.id}/attachments/${message.attachments![index]!.id}`

async function scanned(api: Api, message: Message): Promise<Message> {
  return await until('everything to be scanned', async () => {
    const seen = await show(api, message)
    return states(seen).includes('unscanned') ? null : seen
  })
}

/** Queries with the stage's organization as the parameter. */
async function ask<Row>({ node, caller }: Stage, sql: string): Promise<Row[]> {
  return await node.foundation.db.query<Row>(sql, [caller.organizationId])
}

/** Counts the events for each attachment. */
async function told(stage: Stage): Promise<Record<string, number>> {
  const rows = await ask<{ attachment: string }>(
    stage,
    `select i->>'attachment' as attachment from outbox, jsonb_array_elements(items) i
    where organization_id = $1 and i->>'type' = 'attachment.scanned'`,
  )
  const counts: Record<string, number> = {}
  for (const { attachment } of rows) counts[attachment] = (counts[attachment] ?? 0) + 1
  return counts
}

function zip(t: TestContext, content: Buffer): Buffer {
  const { stdout, status } = spawnSync('python3', ['-c', zipProgram], { input: content, maxBuffer: 64 << 20 })
  assert.equal(status, 0)
  t.diagnostic(`${content.length} bytes in an archive of ${stdout.length}`)
  return stdout
}

const zipProgram = `
import sys, io, zipfile
out = io.BytesIO()
with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as archive: archive.writestr('file', sys.stdin.buffer.read())
sys.stdout.buffer.write(out.getvalue())
`

test('check 64: clean attachments are returned byte for byte, and others never', { skip }, async (t) => {
  const stage = await setStage()
  const { api, inbox } = stage
  const infected = Buffer.from(`Open this: ${virus}\n`)
  const nested = zip(t, zip(t, zip(t, infected)))
  const files: [...File, string][] = [
    ['report.bin', randomBytes(400_000), 'base64', 'clean'],
    ['notes.txt', Buffer.from('Plain.\r\n.dots stay.\r\n'), '7bit', 'clean'],
    ['empty.txt', Buffer.alloc(0), 'base64', 'clean'],
    ['archive.zip', zip(t, Buffer.from('harmless')), 'base64', 'clean'],
    ['virus.txt', infected, 'base64', 'infected'],
    ['nested.zip', nested, 'base64', 'infected'],
    ['secret.zip', encryptedSample, 'base64', 'failed'],
    ['deep.zip', nestedSample, 'base64', 'failed'],
    ['bomb.zip', zip(t, Buffer.alloc(40 << 20)), 'base64', 'failed'],
    ['large.bin', randomBytes((1 << 20) + 1), 'base64', 'failed'],
  ]
  const filed = await receive(
    stage,
    inbox,
    files.map(([name, content, encoding]) => [name, content, encoding]),
  )
  const message = await scanned(api, filed)
  assert.deepEqual(
    states(message),
    files.map(([, , , state]) => state),
  )
  assert.equal(message.inboundSecurity?.attachments, 'infected')
  assert.ok(message.attachments!.every((entry) => !('place' in entry)))
  for (const [index, [name, content, , state]] of files.entries()) {
    const path = pathOf(message, index)
    if (state === 'clean') {
      const bytes = await api.bytes(path)
      assert.equal(
        createHash('sha256').update(bytes).digest('hex'),
        message.attachments![index]!.sha256,
        name,
      )
      // The line end before a boundary belongs to the boundary.
      assert.deepEqual(bytes, content, name)
    } else {
      const { status, body } = await api.call(path)
      assert.deepEqual([status, body.error], [409, 'attachment_not_clean'], name)
    }
  }
  assert.deepEqual(await told(stage), Object.fromEntries(message.attachments!.map(({ id }) => [id, 1])))
  assert.deepEqual(await ask(stage, 'select * from scan where organization_id = $1'), [])
})

test('check 64: every encoding is read from row and blob as it was scanned', {
  skip,
}, async () => {
  const stage = await setStage()
  const lines = Array.from(
    { length: 9000 },
    (_, line) => `Line =3D ${line} has a caf=C3=A9 and =\r\na soft break.\r\n`,
  )
  for (const filler of [0, 300_000]) {
    const files: File[] = [
      ['quoted.txt', Buffer.from(lines.slice(0, filler ? 9000 : 20).join('')), 'quoted-printable'],
      ['filler.bin', randomBytes(filler)],
      ['last.txt', Buffer.from('The last one.'), '7bit'],
    ]
    const message = await scanned(stage.api, await receive(stage, stage.inbox, files))
    assert.deepEqual(states(message), ['clean', 'clean', 'clean'])
    for (const [index, { sha256, size }] of message.attachments!.entries()) {
      const bytes = await stage.api.bytes(pathOf(message, index))
      assert.equal(bytes.length, size)
      assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256)
    }
  }
})

test('check 64: while clamd is down no attachment is returned and no row written, and later all are scanned', {
  skip,
}, async () => {
  const stage = await setStage(waiting)
  const { api, inbox, node, clamd } = stage
  const arrive = (name: string) => receive(stage, inbox, [[name, Buffer.from(`file ${name}`)]])
  const messages = [await arrive('0.txt')]
  await until('the outage to be met', () => node.log().includes('clamd is unreachable'))
  // Another worker may have claimed before it learned of the outage. It has given back when these are filed.
  for (const name of ['1.txt', '2.txt', '3.txt', '4.txt']) messages.push(await arrive(name))
  const claimed = () => ask(stage, claimedScans)
  await until('what met it to be put back', async () => (await claimed()).length === 0)
  const sql = 'select message_id, xmin::text, ctid::text from scan where organization_id = $1 order by 1'
  const versions = () => ask(stage, sql)
  const before = await versions()
  assert.equal(before.length, 5)
  for (let look = 0; look < 5; look++) {
    node.foundation.clock.advance(20_000)
    const asked = node.log().split('clamd is unreachable').length
    assert.equal(asked, 2, 'the outage is told once')
    const { status, body } = await api.call(pathOf(messages[look]!))
    assert.deepEqual([status, body.error], [423, 'attachment_not_scanned'])
  }
  assert.deepEqual(await versions(), before)
  await clamd.start()
  node.foundation.clock.advance(20_000)
  for (const message of messages) assert.deepEqual(states(await scanned(api, message)), ['clean'])
  await until('the end of the outage to be told', () => node.log().includes('clamd answers again'))
})

// Nodes of its own: the first has no clamd.
test('check 64: attachments that came without clamd are scanned once there is one', { skip }, async (t) => {
  const stage = await setStage(await start(t, { POSTHORN_CLAMD: '', POSTHORN_MAIL_HOST: 'mx.test' }))
  const filed = await receive(stage, stage.inbox, [['past.txt', Buffer.from(virus)]])
  assert.equal(filed.inboundSecurity?.attachments, 'unscanned')
  await stage.node.stop()
  await stage.clamd.start()
  const later = await startNode(stage.place, { env: { POSTHORN_CLAMD: stage.clamd.path } })
  assert.deepEqual(states(await scanned(later.meet(stage.caller), filed)), ['infected'])
})

test('check 93: two nodes scan each message once between them', { skip }, async (t) => {
  const stage = await setStage()
  const second = await startNode(stage.place, { env: { POSTHORN_CLAMD: stage.clamd.path }, roles: ['jobs'] })
  t.after(() => second.stop())
  const messages: Message[] = []
  for (let count = 0; count < 12; count++)
    messages.push(
      await receive(stage, stage.inbox, [
        ['a.txt', randomBytes(1000)],
        ['b.txt', randomBytes(1000)],
      ]),
    )
  const done = await Promise.all(messages.map((message) => scanned(stage.api, message)))
  const ids = done.flatMap(({ attachments }) => attachments!.map(({ id }) => id))
  assert.deepEqual(await told(stage), Object.fromEntries(ids.map((id) => [id, 1])))
})

test('check 77: deleting a message or an inbox deletes its scan', { skip }, async () => {
  const stage = await setStage(waiting)
  const { api, inbox, node, clamd } = stage
  await clamd.kill9()
  const other = await api.createInbox()
  const first = await receive(stage, inbox, [['a.txt', Buffer.from('a')]])
  await receive(stage, inbox, [['b.txt', Buffer.from('b')]])
  await receive(stage, other, [['c.txt', Buffer.from('c')]])
  await api.want(`/v1/messages/${first.id}`, { method: 'DELETE', status: 204 })
  const countScans = async () => (await ask(stage, 'select from scan where organization_id = $1')).length
  assert.equal(await countScans(), 2)
  await api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  await until('the inbox to be purged', async () => (await countScans()) === 1)
  await clamd.start()
  node.foundation.clock.advance(20_000)
  await until('the rest to be scanned', async () => (await countScans()) === 0)
  assert.equal(Object.keys(await told(stage)).length, 1)
})

test('check 64: sent attachments are scanned too, and returned by the same rule', { skip }, async () => {
  const stage = await setStage()
  const contents = [randomBytes(2000), Buffer.from(virus), randomBytes(300_000)]
  const attachments = contents.map((content, index) => ({
    filename: `${index}.bin`,
    contentType: 'application/octet-stream',
    content: content.toString('base64'),
  }))
  const body = { to: [{ email: 'someone@far.test' }], subject: 'Files', text: 'Here.', attachments }
  const path = `/v1/inboxes/${stage.inbox.id}/messages`
  const { message } = await stage.api.want<{ message: Message }>(path, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'send-attachments',
    body,
  })
  const done = await scanned(stage.api, message)
  assert.deepEqual(states(done), ['clean', 'infected', 'clean'])
  assert.deepEqual(await stage.api.bytes(pathOf(done, 0)), contents[0])
  assert.deepEqual(await stage.api.bytes(pathOf(done, 2)), contents[2])
  assert.equal((await stage.api.call(pathOf(done, 1))).status, 409)
})

/** Waits until a scan is claimed. */
async function underWay(stage: Stage): Promise<void> {
  const claimed = () => ask(stage, claimedScans)
  await until('a scan to be under way', async () => (await claimed()).length > 0)
}

// Runs last: it stops the node whose clamd was down before.
test('check 64: an attachment is scanned even if clamd is killed, or a node stops, during its scan', {
  skip,
}, async (t) => {
  const stage = await setStage(waiting)
  const { api, inbox, clamd, place, node, caller } = stage
  const { http } = node.app.listening
  const stream = await openStream(t, `http://${http!.host}:${http!.port}`, caller.secret)
  process.kill(clamd.pid(), 'SIGSTOP')
  const filed = await receive(stage, inbox, [['large.bin', randomBytes(900_000)]])
  await underWay(stage)
  // The scan does not block other events.
  const body = { email: 'gone@far.test' }
  await api.want('/v1/suppressions', { method: 'POST', body, status: 201 })
  await until('what else happens', () => stream.events.some(({ type }) => type === 'suppression.created'))
  const log = node.log().length
  await clamd.kill9()
  await until('the outage to be met', () => node.log().includes('clamd is unreachable', log))
  assert.deepEqual(states(await show(api, filed)), ['unscanned'])

  // A file in progress when clamd died waits a minute, because it may have crashed clamd.
  await clamd.start()
  node.foundation.clock.advance(120_000)
  assert.deepEqual(states(await scanned(api, filed)), ['clean'])

  process.kill(clamd.pid(), 'SIGSTOP')
  const next = await receive(stage, inbox, [['next.bin', randomBytes(900_000)]])
  await underWay(stage)
  // The node stops without waiting for clamd, and releases its claim.
  const startedMs = performance.now()
  await node.stop()
  assert.ok(performance.now() - startedMs < 20_000)
  const second = await startNode(place, { env: { POSTHORN_CLAMD: clamd.path } })
  const { clock } = second.foundation
  clock.advance(node.foundation.clock.nowMs() - clock.nowMs() + 120_000)
  process.kill(clamd.pid(), 'SIGCONT')
  assert.deepEqual(states(await scanned(second.meet(caller), next)), ['clean'])
})
