// Attacks with a false identity: reports about another tenant's mail, and a false smarthost.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer as createPlainServer } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Api, Submission } from '../support/api.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { type Attack, mx, type Outcome, send, setStage, timeUntil } from './attack.ts'

async function coRecipient(scope: Scope): Promise<Outcome> {
  const stage = await setStage(scope)
  const { dns, victim, posthorn } = stage
  dns.set('evil.test', mx('mx.healthy.test'))
  const to = ['customer@healthy.test', 'x1@evil.test', 'x2@evil.test', 'x3@healthy.test']
  const inbox = await victim.createInbox()
  const { submission, message } = await send(victim, inbox, to)
  await until('all to be delivered', async () =>
    (await statesOf(victim, submission.id)).every((s) => s === 'delivered'),
  )
  const copies = stage.healthy.copiesOf(message.internetMessageId)
  const paths = new Set(copies.filter(({ recipient }) => recipient !== to[0]).map(({ from }) => from))
  for (const path of paths) {
    const reports = [bounceOf(to[0]!), complaintOf(path, to[0]!)]
    await sendMail(posthorn.smtp, { from: '', to: path, raw: reports[0]! })
    await sendMail(posthorn.smtp, { from: '', to: 'fbl@inbox.test', raw: reports[1]! })
  }
  const isFalse = async () =>
    (await isSuppressed(victim, to[0]!)) || (await statesOf(victim, submission.id))[0] !== 'delivered'
  await timeUntil(isFalse, 8_000)
  const [state] = await statesOf(victim, submission.id)
  const { complaints } = await victim.want<{ complaints: { email: string }[] }>('/v1/complaints')
  const suppressed = await isSuppressed(victim, to[0]!)
  const complained = complaints.some(({ email }) => email === to[0])
  return {
    now: `the other's recipient is ${state}, ${suppressed ? '' : 'not '}suppressed, ${complained ? 'a' : 'no'} complaint`,
    held: state === 'delivered' && !suppressed && !complained,
  }
}

async function statesOf(api: Api, id: string): Promise<string[]> {
  return (await api.want<Submission>(`/v1/submissions/${id}`)).recipients.map(({ status }) => status)
}

async function isSuppressed(api: Api, email: string): Promise<boolean> {
  const { suppressions } = await api.want<{ suppressions: { email: string }[] }>('/v1/suppressions')
  return suppressions.some((suppression) => suppression.email === email)
}

function bounceOf(address: string): Buffer {
  const lines = [
    ...['From: MAILER-DAEMON@evil.test', 'Subject: Undelivered', 'MIME-Version: 1.0'],
    'Content-Type: multipart/report; report-type=delivery-status; boundary=b',
    ...['', '--b', 'Content-Type: message/delivery-status', '', 'Reporting-MTA: dns; mx.evil.test', ''],
    ...[`Final-Recipient: rfc822; ${address}`, 'Action: failed', 'Status: 5.1.1'],
    ...['Diagnostic-Code: smtp; 550 5.1.1 no such user', '--b--', ''],
  ]
  return Buffer.from(lines.join('\r\n'))
}

function complaintOf(returnPath: string, address: string): Buffer {
  const lines = [
    ...['From: feedback@evil.test', 'Subject: Feedback', 'MIME-Version: 1.0'],
    'Content-Type: multipart/report; report-type=feedback-report; boundary=b',
    ...[
      '',
      '--b',
      'Content-Type: message/feedback-report',
      '',
      'Feedback-Type: abuse',
      'User-Agent: Evil/1.0',
    ],
    ...['Version: 1', `Original-Rcpt-To: ${address}`, `Original-Mail-From: <${returnPath}>`, ''],
    ...['--b', 'Content-Type: message/rfc822', '', `Return-Path: <${returnPath}>`, `To: ${address}`],
    ...['Subject: Test', '', 'Hello.', '--b--', ''],
  ]
  return Buffer.from(lines.join('\r\n'))
}

/** A server on loopback under a name that does not look like a loopback address, with a certificate of its own. */
async function falseSmarthost(scope: Scope): Promise<Outcome> {
  const key = readFileSync(`${import.meta.dirname}/../fixtures/tls-key.pem`)
  const cert = readFileSync(`${import.meta.dirname}/../fixtures/tls-cert.pem`)
  let heard = ''
  const server = createPlainServer((socket) => {
    socket.on('error', () => {})
    const say = (to: NodeJS.WritableStream, text: string) => void to.write(text)
    say(socket, '220 attacker.test ESMTP\r\n')
    const converse = (stream: NodeJS.ReadWriteStream, features: string) => {
      stream.on('data', (chunk: Buffer) => {
        const line = chunk.toString('latin1')
        if (/^AUTH/i.test(line)) heard += line
        if (/^EHLO/i.test(line)) say(stream, features)
        else if (/^STARTTLS/i.test(line)) {
          say(stream, '220 go\r\n')
          stream.removeAllListeners('data')
          const secure = new TLSSocket(socket, { isServer: true, key, cert })
          secure.on('error', () => {})
          converse(secure, '250-attacker.test\r\n250 AUTH PLAIN LOGIN\r\n')
        } else say(stream, /^AUTH/i.test(line) ? '235 2.7.0 ok\r\n' : '250 2.0.0 ok\r\n')
      })
    }
    converse(socket, '250-attacker.test\r\n250-AUTH PLAIN LOGIN\r\n250 STARTTLS\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.after(() => void server.close())
  const { port } = server.address() as AddressInfo
  const posthorn = await startPosthorn(scope, {
    env: {
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: `smtp://posthorn:s3cret-relay@[::ffff:127.0.0.1]:${port}`,
    },
  })
  const { api } = await createCaller(posthorn)
  await send(api, await api.createInbox(), ['a@healthy.test'])
  await timeUntil(() => heard, 5_000)
  return { now: heard ? 'the password was given to it' : 'no password was given to it', held: !heard }
}

async function ownAddresses(scope: Scope): Promise<Outcome> {
  const { posthorn } = await setStage(scope, {
    POSTHORN_MAIL_HOST: 'mx.dep.test',
    POSTHORN_MANAGED_DOMAIN: 'inbox.dep.test',
  })
  const raw = Buffer.from('From: a@far.test\r\nSubject: x\r\n\r\nHello.\r\n')
  const replies: string[] = []
  for (const host of ['mx.dep.test', 'inbox.dep.test'])
    for (const name of ['fbl', 'abuse', 'postmaster']) {
      const { outcome } = await sendMail(posthorn.smtp, { from: 'a@far.test', to: `${name}@${host}`, raw })
      if (outcome !== 'accepted') replies.push(`${name}@${host} ${outcome}`)
    }
  return {
    now: replies.join(', ') || 'fbl, abuse and postmaster of both are taken',
    held: replies.length === 0,
  }
}

export const falsifyingAttacks: Attack[] = [
  {
    name: "a recipient reports the others' bounce and complaint at its own return path",
    before: "the other's recipient is bounced and suppressed, with a complaint",
    run: coRecipient,
  },
  {
    name: 'whoever answers in the place of the smarthost, with a certificate of its own',
    before: 'the password was given to it',
    run: falseSmarthost,
  },
  {
    name: "the service's own addresses where mail host and managed domain differ",
    before: 'fbl and abuse of the mail host refused',
    run: ownAddresses,
  },
]
