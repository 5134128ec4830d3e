// Sends the published mails through the real MX: each is refused or stored on purpose, filed, and exported byte for byte.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Api, Inbox, Message } from '../support/api.ts'
import { compare, oracleOf, type PublishedMail, publishedMails } from '../support/oracle.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sent, sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const envelopeSender = 'suite@sender.test'
const mails = publishedMails()
const skip = mails.length === 0 ? 'the published suites are absent (POSTHORN_TESTDATA)' : false

interface Kept {
  mail: PublishedMail
  inbox: Inbox
  message: Message
}

test('check 58: the MX accepts the published mails', { skip }, async (t) => {
  const posthorn = await startPosthorn(t)
  const { api } = await createCaller(posthorn)
  const kept: Kept[] = []

  await t.test(
    'with CRLF at least 130 of 143 get 250, the rest a deliberate 5xx, each within 2 s',
    async (t) => {
      const outcomes = await sendAll(posthorn, api, (mail) => mail.crlf)
      for (const { mail, sent } of outcomes) {
        assert.ok(sent.tookMs < 2000, `${mail.name} took ${Math.round(sent.tookMs)} ms`)
        const isDeliberate = sent.outcome === 'accepted' || /^550[ -]5\.6\.0/.test(sent.reply)
        assert.ok(isDeliberate, `${mail.name}: ${sent.outcome} at ${sent.stage}: ${sent.reply}`)
        assert.equal(sent.outcome === 'accepted', !hasForbidden(mail.crlf), `${mail.name}: ${sent.reply}`)
      }
      const accepted = outcomes.filter(({ sent }) => sent.outcome === 'accepted')
      t.diagnostic(`${accepted.length} of ${mails.length} mails got 250`)
      assert.ok(mails.length < 143 || accepted.length >= 130)
      for (const { mail, inbox } of accepted) {
        const message = await until(
          `${mail.name} in the export`,
          async () => (await api.exported(inbox.id))[0],
        )
        kept.push({ mail, inbox, message })
      }
    },
  )

  await t.test('unchanged, with bare LF, they get 550 5.6.0', async () => {
    for (const { mail, sent } of await sendAll(posthorn, api, (mail) => mail.bytes)) {
      if (hasForbidden(mail.bytes)) assert.match(sent.reply, /^550[ -]5\.6\.0/, mail.name)
      else assert.equal(sent.outcome, 'accepted', `${mail.name}: ${sent.reply}`)
    }
  })

  await t.test('the source has the same bytes after the trace fields', async () => {
    for (const { mail, message } of kept) {
      const source = await api.bytes(`/v1/messages/${message.id}/source`)
      const sent = withLastLineEnd(mail.crlf)
      const at = source.length - sent.length
      assert.ok(at > 0 && source.subarray(at).equals(sent), `${mail.name}: other bytes came back`)
      const trace = source
        .subarray(0, at)
        .toString('latin1')
        .replace(/\r\n[ \t]/g, ' ')
      for (const line of trace.split('\r\n').slice(0, -1))
        assert.match(
          line,
          /^(Return-Path|Delivered-To|Received|Authentication-Results|Received-SPF): /,
          mail.name,
        )
    }
  })

  await t.test('the fields agree with the oracles of mime-stalwart in at least 95 %', async (t) => {
    const compared = kept.flatMap(({ mail, message }) => {
      const oracle = oracleOf(mail)
      return oracle ? compare(readingOf(message), oracle).map((one) => ({ name: mail.name, ...one })) : []
    })
    const other = compared.filter(({ agrees }) => !agrees)
    for (const { name, field, ours, theirs } of other)
      t.diagnostic(`${name} ${field}: ${brief(ours)}, the oracle has ${brief(theirs)}`)
    const share = 1 - other.length / compared.length
    t.diagnostic(
      `${compared.length - other.length} of ${compared.length} fields agree (${(share * 100).toFixed(1)} %)`,
    )
    assert.ok(share >= 0.95)
  })
})

/** Sends each mail to its own inbox, so that no mail is mistaken for another. */
async function sendAll(
  { smtp }: Posthorn,
  api: Api,
  rawOf: (mail: PublishedMail) => Buffer,
): Promise<{ mail: PublishedMail; inbox: Inbox; sent: Sent }[]> {
  const outcomes: { mail: PublishedMail; inbox: Inbox; sent: Sent }[] = []
  for (const mail of mails) {
    const inbox = await api.createInbox()
    const sent = await sendMail(smtp, { from: envelopeSender, to: inbox.address, raw: rawOf(mail) })
    outcomes.push({ mail, inbox, sent })
  }
  return outcomes
}

/** Reports whether the mail has a bare CR, a bare LF or a NUL. */
const hasForbidden = (raw: Buffer): boolean => /\r(?!\n)|(?<!\r)\n|\0/.test(raw.toString('latin1'))

const withLastLineEnd = (raw: Buffer): Buffer =>
  raw.subarray(-2).toString() === '\r\n' ? raw : Buffer.concat([raw, Buffer.from('\r\n')])

function readingOf({ subject, from, to, text, attachments = [] }: Message) {
  return {
    subject,
    // If From has no address, the API shows the envelope sender, because a Mailbox must have an address.
    from: from.email === envelopeSender ? null : from.email,
    to: to.map(({ email }) => email),
    text,
    attachments: attachments.map(({ filename, size }) => ({ filename, sizeBytes: size })),
  }
}

const brief = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 120)
