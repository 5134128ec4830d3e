// Mail sent by SMTP: who may send what, each refusal's reply, and that the mail arrives as its client wrote it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { after, before, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { createTransport } from 'nodemailer'
import { Clock } from '../../src/base/clock.ts'
import { createKey, type KeyInput, unrestricted } from '../../src/flow/accounts/key.ts'
import { purgeContents } from '../../src/flow/upkeep/purge-contents.ts'
import type { Message, Submission } from '../support/api.ts'
import { type Deployment, deploy, makeSender, type Sender } from '../support/deployment.ts'
import { untilStates } from '../support/node.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { Talk } from '../wire/talk.ts'

type Sent = Message & { bcc?: { email: string }[] }
type Submitted = Submission & { metadata: object; purpose: string }

let sink: Sink
let deployment: Deployment
let sender: Sender
const endings: (() => void | Promise<void>)[] = []
before(async () => {
  const scope = { after: (end: () => void | Promise<void>) => void endings.push(end) }
  sink = await startSink(scope)
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_SUBMISSION: '127.0.0.1:0',
    POSTHORN_SUBMISSIONS: '127.0.0.1:0',
  }
  deployment = await deploy(scope, { nodes: 1, env, roles: ['api', 'delivery'] })
  sender = await makeSender(deployment)
})
after(async () => {
  for (const end of endings.reverse()) await end()
})

function portOf(name: 'submission' | 'submissions'): number {
  return deployment.nodes[0]!.app.listening[name]!.port
}

function clientOf(t: TestContext, pass: string, name: 'submission' | 'submissions' = 'submission') {
  const client = createTransport({
    host: '127.0.0.1',
    port: portOf(name),
    secure: name === 'submissions',
    auth: { user: 'anything', pass },
    tls: { rejectUnauthorized: false },
  })
  t.after(() => client.close())
  return client
}

/** Another key of the sender's organization. */
async function createKeyOf({ organizationId }: Sender, change: Partial<KeyInput>): Promise<{ key: string }> {
  const { foundation } = deployment.nodes[0]!
  const made = await createKey(foundation, { ...unrestricted, organizationId, name: 'other', ...change })
  return { key: made.secret }
}

/** The message with this id of the header, in the sender's inbox. */
async function messageOf(internetMessageId: string): Promise<Sent> {
  const list = await sender.api.want<{ messages: Sent[] }>(`/v1/inboxes/${sender.inbox.id}/messages`)
  return list.messages.find((message) => message.internetMessageId === internetMessageId)!
}

/** The copies of a message at the far server, once there are `count`. */
async function copiesOf(messageId: string, count = 1): Promise<string[]> {
  return await until(`${count} copies of ${messageId}`, () => {
    const found = sink.copiesOf(messageId)
    return found.length >= count ? found.map(({ raw }) => raw.toString()) : null
  })
}

async function submissionOf(response: string): Promise<Submitted> {
  return await sender.api.want(`/v1/submissions/${response.split(' ').at(-1)}`)
}

for (const name of ['submission', 'submissions'] as const)
  test(`nodemailer sends from an inbox over ${name}, and the mail arrives as it was written`, async (t) => {
    const sent = await clientOf(t, sender.secret, name).sendMail({
      from: { name: 'Ada', address: sender.inbox.address },
      to: 'ben@far.test',
      bcc: 'hidden@far.test',
      subject: 'Grüße',
      text: 'Guten Tag.\n.\nEnde',
      attachments: [{ filename: 'a.txt', content: 'attached' }],
    })
    const copies = await copiesOf(sent.messageId, 2)
    for (const copy of copies) {
      assert.match(copy, /^Received: by localhost \(Posthorn\) with ESMTPSA id /)
      assert.match(copy, /\r\nDKIM-Signature: .*\r\n d=inbox.test;/)
      assert.match(copy, /\r\nSubject: =\?UTF-8\?Q\?Gr=C3=BC=C3=9Fe\?=\r\n/)
      assert.doesNotMatch(copy, /hidden|Bcc/i)
      assert.match(copy, /\r\nGuten Tag\.\r\n\.\r\nEnde\r\n[\s\S]*\r\nYXR0YWNoZWQ=\r\n/)
    }
    const { recipients } = await submissionOf(sent.response)
    assert.deepEqual(
      recipients.map(({ email }) => email),
      ['ben@far.test', 'hidden@far.test'],
    )
    const message = await messageOf(sent.messageId)
    const [attachment] = message.attachments ?? []
    assert.deepEqual(
      [message.direction, message.subject, message.text, message.bcc, attachment?.filename, attachment?.size],
      ['outbound', 'Grüße', 'Guten Tag.\n.\nEnde', [{ email: 'hidden@far.test' }], 'a.txt', 8],
    )
  })

test('an answer from an inbox joins the thread of the message that it names', async (t) => {
  const answered = await sender.api.want<Message>(`/v1/messages/${sender.thread.messageId}`)
  const { messageId } = await clientOf(t, sender.secret).sendMail({
    from: sender.inbox.address,
    to: 'answers@far.test',
    subject: 'Re: First',
    text: 'Yes.',
    inReplyTo: answered.internetMessageId,
  })
  assert.equal((await messageOf(messageId)).threadId, sender.thread.id)
})

test('mail through a domain has no inbox; its own fields become metadata and purpose', async (t) => {
  const { response, messageId } = await clientOf(t, sender.secret).sendMail({
    from: sender.from,
    to: 'ben@far.test',
    subject: 'Hello',
    html: '<p>Hello</p>',
    headers: { 'X-Posthorn-Metadata-Order': '4711', 'X-Posthorn-Purpose': 'transactional' },
  })
  const submission = await submissionOf(response)
  assert.deepEqual([submission.metadata, submission.purpose], [{ order: '4711' }, 'transactional'])
  assert.doesNotMatch((await copiesOf(messageId))[0]!, /x-posthorn/i)
})

test('a large mail through a domain is sent from its blob, which goes with its content', async (t) => {
  const content = 'x'.repeat(900_000)
  const mail = { from: sender.from, to: 'ben@far.test', subject: 'Large', text: 'See' }
  const { messageId, response } = await clientOf(t, sender.secret).sendMail({
    ...mail,
    attachments: [{ filename: 'l.txt', content }],
  })
  const [copy = ''] = await copiesOf(messageId)
  assert.ok(copy.length > 1_200_000, `${copy.length}`)
  const { foundation } = deployment.nodes[0]!
  const { id } = await submissionOf(response)
  await untilStates(sender.api, id, 'delivered')
  const sql = 'select raw_id as id from send_content where submission_id = $1'
  const [raw] = await foundation.db.query<{ id: string }>(sql, [id])
  assert.equal(await foundation.blobs.has(raw!.id), true)
  const later = new Clock()
  later.advance(30 * 86_400_000)
  while (await purgeContents({ ...foundation, clock: later }, 86_400_000, 100));
  assert.equal(await foundation.blobs.has(raw!.id), false)
})

async function connect(t: TestContext): Promise<Talk> {
  const talk = await Talk.connect(t, portOf('submissions'))
  await talk.secure()
  await talk.reply()
  await talk.ask('EHLO c.test')
  return talk
}

const login = (secret: string) => `AUTH PLAIN ${Buffer.from(`\0a\0${secret}`).toString('base64')}`

/** Logs in with the key and sends the lines one by one. Returns the last reply. */
async function replyTo(t: TestContext, secret: string, ...lines: string[]): Promise<string | null> {
  const talk = await connect(t)
  let answer = await talk.ask(login(secret))
  for (const line of lines) answer = await talk.ask(line)
  talk.destroy()
  return answer
}

const from = 'MAIL FROM:<a@x.test>'
const to = 'RCPT TO:<ben@far.test>'

test('each refusal has its code and the words of the error', async (t) => {
  const other = await makeSender(deployment)
  const key = { allowedRecipientDomains: ['far.test'] }
  const limits = { recipientsPerMessage: 1, messagesPerMinute: 1, messageContentBytes: 1_000 }
  const limited = await makeSender(deployment, { key, limits })
  const reader = await createKeyOf(sender, { scopes: ['mailbox:read'] })
  const careful = await createKeyOf(sender, { confirmNewRecipients: true })
  const mail = (sending: string, more = '') => `From: <${sending}>\r\nSubject: S\r\n${more}\r\nT\r\n.`
  const [{ secret }, own] = [sender, sender.inbox.address]
  const cases: [RegExp, string, ...string[]][] = [
    [/^535 5\.7\.8 /, 'ph_wrong'],
    [/^550 5\.1\.3 /, secret, from, 'RCPT TO:<ben@[127.0.0.1]>'],
    [/^550 5\.7\.1 .*\(recipient_domain_not_allowed\)$/, limited.secret, from, 'RCPT TO:<ben@other.test>'],
    [
      /^550 5\.7\.1 .*\(recipient_not_confirmed\)$/,
      careful.key,
      from,
      'RCPT TO:<new@far.test>',
      'DATA',
      mail(own),
    ],
    [/^452 4\.5\.3 .*\(too_many_recipients\)$/, limited.secret, from, to, 'RCPT TO:<c@far.test>'],
    [/^552 5\.3\.4 .*\(message_too_large\)$/, limited.secret, `${from} SIZE=1001`],
    [
      /^452 4\.7\.0 .*\(send_limit_exceeded\)$/,
      limited.secret,
      from,
      to,
      'DATA',
      mail(limited.inbox.address),
    ],
    [/^550 5\.7\.1 .*\(sender_not_allowed\)$/, secret, from, to, 'DATA', mail(other.inbox.address)],
    [/^550 5\.7\.1 .*\(sender_not_allowed\)$/, secret, from, to, 'DATA', mail('a@unverified.test')],
    [/^550 5\.7\.1 .*\(insufficient_scope\)$/, reader.key, from, to, 'DATA', mail(own)],
    [
      /^554 5\.7\.1 .*\(marketing_not_available\)$/,
      secret,
      from,
      to,
      'DATA',
      mail(own, 'X-Posthorn-Purpose: marketing\r\n'),
    ],
    [/^554 5\.6\.0 .*more than one from field/, secret, from, to, 'DATA', mail(own, `From: <${own}>\r\n`)],
    [/^554 5\.6\.0 The sender is not clear: /, secret, from, to, 'DATA', mail(`${own}> <ceo@bank.test`)],
    [/^550 5\.6\.0 /, secret, from, to, 'DATA', mail(own, 'X: a\nb\r\n')],
    [/^550 5\.6\.7 /, secret, from, to, 'DATA', mail(own, 'X: ä\r\n')],
    [/^250 2\.0\.0 /, secret, from, to, 'DATA', mail(own)],
  ]
  for (const [wanted, given, ...lines] of cases)
    assert.match((await replyTo(t, given, ...lines)) ?? '', wanted)
})

test('an inbox of another organization is refused as an address that does not exist', async (t) => {
  const other = await makeSender(deployment)
  for (const scopes of [['mailbox:send'], ['mailbox:send', 'delivery:send']] as const) {
    const { key } = await createKeyOf(sender, { scopes: [...scopes] })
    const [theirs, missing] = await Promise.all(
      [other.inbox.address, 'missing@inbox.test'].map((address) =>
        replyTo(t, key, from, to, 'DATA', `From: <${address}>\r\n\r\nT\r\n.`),
      ),
    )
    assert.match(theirs!, /^550 5\.7\.1 /)
    assert.equal(theirs, missing)
  }
})

test('a key that is revoked while its mail arrives sends nothing', async (t) => {
  const { foundation } = deployment.nodes[0]!
  const { key } = await createKeyOf(sender, { name: 'revoked' })
  const talk = await connect(t)
  for (const line of [login(key), from, to, 'DATA']) await talk.ask(line)
  await foundation.db.writer.query(`update api_key set revoked_at = now() where name = 'revoked'`)
  deployment.advance(1_000)
  assert.match((await talk.ask(`From: <${sender.inbox.address}>\r\n\r\nT\r\n.`))!, /^535 5\.7\.8 /)
  assert.match((await talk.ask(from))!, /^535 5\.7\.8 /)
  talk.destroy()
})

test('a key that may only reply reaches those whom a reply reaches', async (t) => {
  const answered = await sender.api.want<Message>(`/v1/messages/${sender.thread.messageId}`)
  const { key } = await createKeyOf(sender, { sendMode: 'reply_only' })
  const header = `From: <${sender.inbox.address}>\r\nIn-Reply-To: ${answered.internetMessageId}\r\n\r\nT\r\n.`
  assert.match((await replyTo(t, key, from, to, 'DATA', header))!, /\(send_mode_reply_only\)$/)
  assert.match((await replyTo(t, key, from, 'RCPT TO:<answers@far.test>', 'DATA', header))!, /^250 /)
})

test('the requests of a key are limited as over HTTP', async (t) => {
  const { secret } = await deployment.nodes[0]!.createCaller({ limits: { requestsPerMinute: 1 } })
  const refused = await replyTo(t, secret, from, 'RSET', from)
  assert.match(refused!, /^451 4\.7\.0 .*\(rate_limited\)$/)
})

const python = `import smtplib, ssl, sys
from email.message import EmailMessage
submission, submissions, secret, sender = sys.argv[1:]
context = ssl._create_unverified_context()
def mail():
    m = EmailMessage()
    m["From"], m["To"], m["Subject"] = sender, "ben@far.test", "Python"
    m.set_content("Grüße")
    return m
with smtplib.SMTP("127.0.0.1", int(submission)) as s:
    s.starttls(context=context); s.login("any", secret); s.send_message(mail())
with smtplib.SMTP_SSL("127.0.0.1", int(submissions), context=context) as s:
    s.login("any", secret); s.send_message(mail()); s.send_message(mail())
`

test('Python’s smtplib and swaks send over both ports', async () => {
  const run = promisify(execFile)
  const [submission, submissions] = [portOf('submission'), portOf('submissions')].map(String)
  const address = sender.inbox.address
  await run('python3', ['-c', python, submission!, submissions!, sender.secret, address])
  const common = [
    '--from',
    address,
    '--to',
    'ben@far.test',
    '--auth-user',
    'any',
    '--auth-password',
    sender.secret,
  ]
  for (const way of [
    ['--tls', '--port', submission!, '--auth', 'LOGIN'],
    ['--tlsc', '--port', submissions!, '--auth', 'PLAIN'],
  ]) {
    const { stdout } = await run('swaks', ['--server', '127.0.0.1', ...common, ...way])
    assert.match(stdout, /250 2\.0\.0 Ok: queued as /)
  }
})

// Last: it moves the clock by a day.
test('a mail that is sent again is accepted once, whatever its Date; other content or recipients are not it', async (t) => {
  const client = clientOf(t, sender.secret)
  const mail = (change: object = {}) => ({
    from: sender.inbox.address,
    to: 'ben@far.test',
    subject: 'Once',
    text: 'Once',
    messageId: `<${randomUUID()}@client.test>`,
    ...change,
  })
  const given = mail()
  const first = await client.sendMail(given)
  const again = await client.sendMail({ ...given, date: new Date(0) })
  const other = await client.sendMail({ ...given, to: 'other@far.test' })
  assert.equal(again.response, first.response)
  assert.notEqual(other.response, first.response)
  await assert.rejects(
    client.sendMail({ ...given, text: 'Twice' }),
    /554 5\.6\.0 Another mail with this Message-ID .*\(idempotency_key_reused\)/,
  )
  deployment.advance(23 * 3_600_000)
  assert.equal((await client.sendMail(given)).response, first.response)
  deployment.advance(2 * 3_600_000)
  assert.notEqual((await client.sendMail(given)).response, first.response)
})

/** Sends a mail with these MAIL parameters and this field. Returns its submission. */
async function submitted(t: TestContext, parameters: string, field: string): Promise<Submitted> {
  const { address } = sender.inbox
  const lines = [`MAIL FROM:<${address}>${parameters}`, 'RCPT TO:<ben@far.test>', 'DATA']
  const message = [`From: ${address}`, `Message-ID: <${randomUUID()}@far.test>`, field, '', 'Hi', '.']
  const answer = await replyTo(t, sender.secret, ...lines, message.join('\r\n'))
  assert.match(answer!, /^250 2\.0\.0 Ok: queued as /)
  return await submissionOf(answer!)
}

test('a mail with REQUIRETLS ends if the smarthost offers no TLS, and one with TLS-Required: No is sent', async (t) => {
  const demanding = await submitted(t, ' REQUIRETLS', 'TLS-Required: No')
  const { recipients } = await untilStates(sender.api, demanding.id, 'failed')
  assert.equal(recipients[0]!.failureCode, 'tls_required')
  assert.match(recipients[0]!.response!, /^5\.7\.10 .* does not offer STARTTLS$/)
  const relaxed = await submitted(t, '', 'TLS-Required: No')
  await untilStates(sender.api, relaxed.id, 'delivered')
})
