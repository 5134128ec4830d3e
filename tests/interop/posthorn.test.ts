// Tests Posthorn with other servers: Postfix, Exim and swaks deliver to it, and it delivers to Postfix, Exim and smtp-sink.
import assert from 'node:assert/strict'
import { accessSync } from 'node:fs'
import { before, type TestContext, test } from 'node:test'
import PostalMime from 'postal-mime'
import type { Acceptance, Inbox, Message, Submission } from '../support/api.ts'
import { run } from '../support/command.ts'
import { type DkimRecords, findJudges } from '../support/dkim-judges.ts'
import { createCaller, inherited, type Posthorn, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { findExim, startExim } from './exim.ts'
import type { Neighbour } from './neighbour.ts'
import { postfixMissing, startPostfix } from './postfix.ts'
import { smtpSinkPath, startSmtpSink } from './smtp-sink.ts'

const subject = 'Grüße — 你好, "neighbour"'
const text = 'First line\n.a dot\n..\n\nFrom here on: ä ö ü 🙂\n'
// No server listens here. Used when nothing must be relayed.
const nowhere = { host: '127.0.0.1', port: 9 }

const exim = findExim()
const judges = findJudges()
const missing = {
  postfix: postfixMissing(),
  exim: 'missing' in exim ? exim.missing : null,
  swaks: programMissing('/usr/bin/swaks'),
  'smtp-sink': programMissing(smtpSinkPath),
}
const startEximHere = (scope: Scope, relay: { host: string; port: number }) =>
  startExim(scope, 'folder' in exim ? exim.folder : '', relay)

function programMissing(path: string): string | null {
  try {
    accessSync(path)
    return null
  } catch {
    // Not installed.
    return `${path} is not installed`
  }
}

before(() => {
  const absent = Object.entries(missing).filter(([, reason]) => reason !== null)
  const isRoot = process.getuid?.() === 0
  assert.ok(
    !process.env['CI'] || !isRoot || absent.length === 0,
    `in CI nothing is skipped: ${absent.join('; ')}`,
  )
})

const receivers: [
  name: keyof typeof missing,
  send: (posthorn: Posthorn, to: string, t: TestContext) => Promise<void>,
][] = [
  ['swaks', sendBySwaks],
  ['postfix', async (posthorn, to, t) => sendThrough(await startPostfix(t, posthorn.smtp), to)],
  ['exim', async (posthorn, to, t) => sendThrough(await startEximHere(t, posthorn.smtp), to)],
]

for (const [name, send] of receivers)
  test(`${name} delivers into posthorn`, { skip: missing[name] ?? false }, async (t) => {
    const posthorn = await startPosthorn(t)
    const { api } = await createCaller(posthorn)
    const inbox = await api.createInbox()
    await send(posthorn, inbox.address, t)
    const message = await until('the mail to be filed', async () => (await api.exported(inbox.id))[0])
    assert.equal(message.direction, 'inbound')
    assert.equal(message.from.email, 'stranger@sender.test')
    assert.equal(message.subject, subject)
    assert.equal(message.text.trimEnd(), text.trimEnd())
  })

function wireMessage(to: string): Buffer {
  const encoded = `=?utf-8?B?${Buffer.from(subject).toString('base64')}?=`
  const fields = [
    'From: Stranger <stranger@sender.test>',
    `To: ${to}`,
    `Subject: ${encoded}`,
    'Date: Sat, 21 Nov 2026 09:00:00 +0000',
    'Message-ID: <neighbour@sender.test>',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 8bit',
  ]
  return Buffer.from(`${fields.join('\r\n')}\r\n\r\n${text.replaceAll('\n', '\r\n')}`)
}

async function sendBySwaks({ smtp }: Posthorn, to: string): Promise<void> {
  const server = [
    '--server',
    smtp.host,
    '--port',
    String(smtp.port),
    '--from',
    'stranger@sender.test',
    '--to',
    to,
  ]
  const words = [...server, '--protocol', 'ESMTP', '--pipeline', '--data', '-']
  // swaks makes the line ends CRLF and stuffs the dots itself.
  const input = Buffer.from(wireMessage(to).toString().replaceAll('\r\n', '\n'))
  const { status, stdout } = await run('/usr/bin/swaks', words, inherited(), '/', input)
  assert.equal(status, 0, stdout)
}

async function sendThrough(neighbour: Neighbour, to: string): Promise<void> {
  const sent = await sendMail(neighbour, { from: 'stranger@sender.test', to, raw: wireMessage(to) })
  assert.equal(sent.outcome, 'accepted', sent.reply)
}

type Kept = () => Buffer[]

const senders: [
  name: keyof typeof missing,
  to: string,
  start: (t: TestContext) => Promise<[string, Kept]>,
][] = [
  ['postfix', 'box@postfix.test', async (t) => asRelay(await startPostfix(t, nowhere))],
  ['exim', 'box@exim.test', async (t) => asRelay(await startEximHere(t, nowhere))],
  ['smtp-sink', 'box@sink.test', async (t) => asRelay(await startSmtpSink(t))],
]

for (const [name, to, start] of senders)
  test(`posthorn delivers to ${name}, signed`, { skip: missing[name] ?? false }, async (t) => {
    const [url, kept] = await start(t)
    const posthorn = await startPosthorn(t, { env: { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: url } })
    const { message } = await sendAndAwait(posthorn, to)
    const raw = await until('the mail to be kept', () => kept()[0])
    await assertContent(raw, message, to)
    // RFC 6376 5.3: the signature is over CRLF line ends, which a maildir does not have.
    const wire = Buffer.from(raw.toString('latin1').replace(/\r?\n/g, '\r\n'), 'latin1')
    await assertSigned(posthorn, wire)
  })

test('check 43: strangers verify posthorn’s mail as it appears on the wire', async (t) => {
  const sink = await startSink(t)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const posthorn = await startPosthorn(t, { env })
  const { message } = await sendAndAwait(posthorn, 'box@sink.test')
  const raw = sink.copiesOf(message.internetMessageId)[0]!.raw
  await assertContent(raw, message, 'box@sink.test')
  await assertSigned(posthorn, raw)
})

const asRelay = ({ host, port, kept }: Omit<Neighbour, 'logFile'>): [string, Kept] => [
  `smtp://${host}:${port}`,
  kept,
]

async function sendAndAwait(posthorn: Posthorn, to: string): Promise<{ message: Message; inbox: Inbox }> {
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const { message, submission } = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'neighbour-1',
    body: { to: [{ email: to, name: 'The "Box", Ltd.' }], subject, text },
  })
  await until('the submission to be delivered', async () => {
    const { status } = await api.want<Submission>(`/v1/submissions/${submission.id}`)
    return status === 'delivered'
  })
  return { message, inbox }
}

async function assertContent(raw: Buffer, message: Message, to: string): Promise<void> {
  const mail = await PostalMime.parse(raw)
  assert.equal(mail.subject, subject)
  assert.equal(mail.text?.replaceAll('\r\n', '\n').trimEnd(), text.trimEnd())
  assert.equal(mail.messageId, message.internetMessageId)
  assert.equal(mail.from?.address, message.from.email)
  assert.deepEqual(mail.to, [{ address: to, name: 'The "Box", Ltd.' }])
}

async function managedKeys(posthorn: Posthorn): Promise<DkimRecords> {
  const { managedDomain } = await posthorn.cli<{
    managedDomain: { dkim: { name: string; value: string }[] }
  }>(['doctor'])
  return Object.fromEntries(managedDomain.dkim.map(({ name, value }) => [name, value]))
}

/** Asserts that the message verifies, and that it fails with another subject. */
async function assertSigned(posthorn: Posthorn, raw: Buffer): Promise<void> {
  const keys = await managedKeys(posthorn)
  const altered = Buffer.from(raw.toString('latin1').replace(/^Subject: /m, 'Subject: x'), 'latin1')
  for (const judge of judges)
    assert.deepEqual(await judge.verify([raw, altered], keys), [true, false], judge.name)
}
