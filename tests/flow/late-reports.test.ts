// Unusual reports, awkward moments, and mail for a deleted inbox: none is lost or misapplied. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, afterEach, test } from 'node:test'
import type { Acceptance, Submission } from '../support/api.ts'
import { makePlace, send, startNode, type TestCaller, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { type Sent, sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'
import { stuff, Wire } from '../support/wire.ts'

const dayMs = 86_400_000

const place = await makePlace({ after })
const sink = await startSink(place)
const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
/** Tests move its clock, but no test depends on the day. */
const node = await startNode(place, { env })
afterEach(() => {
  sink.rule = () => null
})

interface Sending {
  accepted: Acceptance
  inboxId: string
  returnPath: string
}

/** Sends to one recipient and waits for the delivery. */
async function deliver({ api }: TestCaller, to: string): Promise<Sending> {
  const inbox = await api.createInbox()
  const accepted = await send(api, inbox, [to])
  await untilStates(api, accepted.submission.id, 'delivered')
  const [copy] = sink.copiesOf(accepted.message.internetMessageId)
  return { accepted, inboxId: inbox.id, returnPath: copy!.from }
}

async function report(to: string, text: string): Promise<string> {
  const raw = Buffer.from(text.replaceAll(/\r?\n/g, '\r\n'))
  const sent = await sendMail(node.smtp, { from: '', to, raw })
  return sent.outcome === 'accepted' ? 'accepted' : sent.reply
}

async function untilRead(): Promise<void> {
  await until('all reports to be read', async () => {
    const waiting = await node.foundation.db.query(`select from kept_mail where purpose <> 'operator'`)
    return waiting.length === 0
  })
}

async function stateOf({ api }: TestCaller, { accepted }: Sending): Promise<string | undefined> {
  const submission = await api.want<Submission>(`/v1/submissions/${accepted.submission.id}`)
  return submission.recipients[0]?.status
}

async function suppressedBy({ api }: TestCaller): Promise<string[]> {
  const { suppressions } = await api.want<{ suppressions: { email: string }[] }>('/v1/suppressions')
  return suppressions.map(({ email }) => email).sort()
}

/** A report with a text for people, and fields in the part for programs. */
function dsn(part: string, words = ''): string {
  return `From: MAILER-DAEMON@far.test
Subject: Undelivered
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
${words}
--b
${part}
--b--
`
}

const status = (fields: string) =>
  `Content-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\n\n${fields}`
const unknown = (to: string) =>
  `Final-Recipient: rfc822; ${to}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 user unknown\n`
const open = (to: string) => `Final-Recipient: rfc822; ${to}\nAction: failed\nStatus: 5.0.0\n`
const base64 = (text: string) => Buffer.from(text).toString('base64')

test('check 47: a report about several recipients moves only the one of its return path', async () => {
  const caller = await node.createCaller()
  const [ada, ben] = [await deliver(caller, 'ada@far.test'), await deliver(caller, 'ben@far.test')]
  const all = ['ada@far.test', 'ben@far.test', 'eve@far.test'].map(unknown).join('\n')
  assert.equal(await report(ada.returnPath, dsn(status(all))), 'accepted')
  await untilRead()
  assert.deepEqual([await stateOf(caller, ada), await stateOf(caller, ben)], ['bounced', 'delivered'])
  assert.deepEqual(await suppressedBy(caller), ['ada@far.test'])
})

test('check 47: a report moves its recipient in any encoding', async () => {
  const caller = await node.createCaller()
  const words = 'Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: '
  const utf8 = 'jörg@bücher.test'
  const dresses: Record<string, string> = {
    'fields@far.test': dsn(
      `Content-Type: message/delivery-status\nContent-Transfer-Encoding: base64\n\n${base64(`Reporting-MTA: dns; far.test\n\n${unknown('fields@far.test')}`)}`,
    ),
    'base64@far.test': dsn(
      status(open('base64@far.test')),
      `${words}base64\n\n${base64('Über base64@far.test:\n550 User unknown')}`,
    ),
    '8bit@far.test': dsn(
      status(open('8bit@far.test')),
      `${words}8bit\n\nÜber 8bit@far.test:\n550 User unknown`,
    ),
    'jörg@far.test': dsn(
      status('Final-Recipient: utf-8; j\\x{F6}rg@far.test\nAction: failed\nStatus: 5.1.1\n'),
    ),
    [utf8]: dsn(
      `Content-Type: message/global-delivery-status\nContent-Transfer-Encoding: 8bit\n\nReporting-MTA: dns; far.test\n\nFinal-Recipient: utf-8; ${utf8}\nAction: failed\nStatus: 5.1.1\n\nFinal-Recipient: utf-8; other@far.test\nAction: delayed\nStatus: 4.4.1\n`,
    ),
  }
  for (const [to, text] of Object.entries(dresses)) {
    const sending = await deliver(caller, to)
    assert.equal(await report(sending.returnPath, text), 'accepted', to)
    await untilRead()
    assert.equal(await stateOf(caller, sending), 'bounced', to)
  }
  const stored = Object.keys(dresses).map((to) => to.replace('bücher', 'xn--bcher-kva'))
  assert.deepEqual(await suppressedBy(caller), stored.sort())
})

test('check 47: a bounce of mail whose 250 was lost ends it, and the mail is not sent again', async () => {
  const caller = await node.createCaller()
  let attempts = 0
  sink.rule = async ({ stage: step, from, recipients }) => {
    if (step !== 'message') return null
    attempts++
    assert.equal(await report(from, dsn(status(unknown(recipients[0]!)))), 'accepted')
    await until('the report to be put off', async () => {
      const [row] = await node.foundation.db.query('select from kept_mail where retry_at is not null')
      return row
    })
    return 'cut'
  }
  const { submission } = await send(caller.api, await caller.api.createInbox(), ['gone@far.test'])
  await untilStates(caller.api, submission.id, 'deferred')
  node.foundation.clock.advance(3_000)
  await untilStates(caller.api, submission.id, 'bounced')
  // Its next attempt is long overdue.
  node.foundation.clock.advance(dayMs)
  const later = await send(caller.api, await caller.api.createInbox(), ['fine@far.test'])
  sink.rule = () => null
  await untilStates(caller.api, later.submission.id, 'delivered')
  assert.equal(attempts, 1)
  assert.deepEqual(await suppressedBy(caller), ['gone@far.test'])
})

test('check 48: a 30-day-old return path is refused, and one within a complaint changes nothing', async () => {
  const caller = await node.createCaller()
  const sending = await deliver(caller, 'ada@far.test')
  const { clock } = node.foundation
  clock.advance(29 * dayMs)
  const holiday = 'From: ada@far.test\nSubject: Automatic reply: Test\n\nBack on Monday.\n'
  assert.equal(await report(sending.returnPath, holiday), 'accepted')
  clock.advance(2 * dayMs)
  assert.match(await report(sending.returnPath, dsn(status(unknown('ada@far.test')))), /^550 5\.1\.1 /)
  assert.equal(await report('fbl@inbox.test', forwarded(sending.returnPath)), 'accepted')
  await untilRead()
  assert.equal(await stateOf(caller, sending), 'delivered')
  assert.deepEqual(await suppressedBy(caller), [])
})

function forwarded(returnPath: string): string {
  return `From: staff@far.test
Subject: complaint about message from 192.0.2.1
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: message/rfc822

X-HmXmrOriginalRecipient: <ada@far.test>
Return-Path: <${returnPath}>
From: test@inbox.test
Subject: Test

x
--b--
`
}

test('check 47: a complaint that forwards the message counts as abuse, by its return path alone', async () => {
  const caller = await node.createCaller()
  const [ada, ben] = [await deliver(caller, 'ada@far.test'), await deliver(caller, 'ben@far.test')]
  const forged = `${ada.returnPath.slice(0, 20)}${ada.returnPath[20] === 'a' ? 'b' : 'a'}${ada.returnPath.slice(21)}`
  assert.equal(await report('fbl@inbox.test', forwarded(forged)), 'accepted')
  // A reply may attach the original message. At a return path this is no complaint.
  assert.equal(await report(ben.returnPath, forwarded(ben.returnPath)), 'accepted')
  await untilRead()
  assert.deepEqual(await suppressedBy(caller), [])
  for (const copy of ['first', 'second'])
    assert.equal(await report('fbl@inbox.test', forwarded(ada.returnPath)), 'accepted', copy)
  await untilRead()
  assert.deepEqual(await suppressedBy(caller), ['ada@far.test'])
  const { complaints } = await caller.api.want<{ complaints: Record<string, unknown>[] }>('/v1/complaints')
  assert.deepEqual(
    complaints.map(({ email, submissionId, feedbackType, reportedBy }) => [
      email,
      submissionId,
      feedbackType,
      reportedBy,
    ]),
    [['ada@far.test', ada.accepted.submission.id, 'abuse', 'far.test']],
  )
})

test('check 77: an inbox with mail on the wire cannot be deleted, and its bounces count after its deletion', async () => {
  const caller = await node.createCaller()
  const inbox = await caller.api.createInbox()
  const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>()
  const { promise: onWire, resolve: isOnWire } = Promise.withResolvers<string>()
  sink.rule = async ({ stage: step, from }) => {
    if (step !== 'message') return null
    isOnWire(from)
    await mayGoOn
    return null
  }
  const { submission } = await send(caller.api, inbox, ['gone@far.test'])
  const returnPath = await onWire
  await caller.api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 409 })
  goOn()
  await untilStates(caller.api, submission.id, 'delivered')
  await caller.api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  assert.equal(await report(returnPath, dsn(status(unknown('gone@far.test')))), 'accepted')
  await untilStates(caller.api, submission.id, 'bounced')
  assert.deepEqual(await suppressedBy(caller), ['gone@far.test'])
})

test('check 77: mail that ends after its inbox was deleted is never acknowledged as kept', async (t) => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const raw = Buffer.from('From: ben@far.test\r\nSubject: Test\r\n\r\nx\r\n')
  let deletedMs = Number.POSITIVE_INFINITY
  const sendUntilGone = async (): Promise<{ sent: Sent; endedMs: number }[]> => {
    const mails: { sent: Sent; endedMs: number }[] = []
    for (let late = 0; late < 3; ) {
      let endedMs = 0
      const onDot = () => (endedMs = performance.now())
      const sent = await sendMail(node.smtp, { from: 'ben@far.test', to: inbox.address, raw }, { onDot })
      mails.push({ sent, endedMs })
      if (endedMs === 0 || endedMs > deletedMs) late++
    }
    return mails
  }
  const senders = Array.from({ length: 6 }, sendUntilGone)
  await until('mail to come in', async () => {
    const { messages } = await api.want<{ messages: unknown[] }>(`/v1/inboxes/${inbox.id}/messages`)
    return messages.length > 3
  })
  const socket = connect({ ...node.smtp, noDelay: true })
  t.after(() => socket.destroy())
  const held = new Wire(socket)
  for (const command of [
    '',
    'EHLO far.test',
    'MAIL FROM:<ben@far.test>',
    `RCPT TO:<${inbox.address}>`,
    'DATA',
  ]) {
    if (command !== '') await held.write(`${command}\r\n`)
    assert.match((await held.reply())!, /^[23]/, command)
  }
  // RCPT results are cached for a second, here for a minute more. Only the commit can know better.
  node.foundation.clock.advance(-60_000)
  await api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  deletedMs = performance.now()
  await held.write(stuff(raw))
  assert.match((await held.reply())!, /^550 5\.1\.1 /)
  const mails = (await Promise.all(senders)).flat()
  for (const { sent, endedMs } of mails) {
    const isRefused = sent.reply.startsWith('550 5.1.1 ')
    assert.ok(isRefused || (sent.outcome === 'accepted' && endedMs < deletedMs), sent.reply)
  }
})
