// Tests reports as a table: the reading of each mail, and whether a refusal in these words means a dead address.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecipientReport } from './recipient-report.ts'
import { classify } from './reply-code.ts'
import { type ReportAddress, readReport } from './report.ts'

function read(mail: string, sentTo?: ReportAddress) {
  return readReport(Buffer.from(mail.replaceAll(/\r?\n/g, '\r\n')), sentTo)
}

function recipientsOf(mail: string): RecipientReport[] {
  const report = read(mail)
  return report?.kind === 'delivery' ? report.recipients : []
}

/** `action code status stage`, and whether the reply means a dead address. */
function told(recipient: RecipientReport | undefined): string | null {
  if (!recipient) return null
  const { action, code, enhanced, stage, text } = recipient
  const isPermanent = code === null ? enhanced?.startsWith('5') === true : code >= 500
  const { suppresses } = classify({ code: isPermanent ? 550 : 450, enhanced, text }, stage)
  return `${action} ${code} ${enhanced} ${stage} ${suppresses ? 'dead' : 'alive'}`
}

const bounce = (text: string) => `From: MAILER-DAEMON@far.test\nSubject: Undelivered mail\n\n${text}`
const plain = (text: string) => `From: no-reply@far.test\nSubject: Mail\n\n${text}`

const worded: [name: string, mail: string, wanted: string | null][] = [
  [
    'a reply after the words "error from remote mail server after RCPT TO"',
    bounce(
      'ada@far.test\n  SMTP error from remote mail server after RCPT TO:<ada@far.test>:\n  host mx.far.test: 550 Unknown user',
    ),
    'failed 550 null rcpt dead',
  ],
  [
    'the same after the end of the message',
    bounce(
      'ada@far.test\n  SMTP error from remote mail server after end of data:\n  host mx.far.test: 550 Unknown user',
    ),
    'failed 550 null message alive',
  ],
  [
    'the same about the sender',
    bounce(
      'ada@far.test\n  SMTP error from remote mail server after MAIL FROM:<b@us.test>:\n  host mx.far.test: 550 Unknown user',
    ),
    'failed 550 null mail alive',
  ],
  [
    'a reply in answer to the end of DATA, as Postfix says it',
    bounce(
      '<ada@far.test>: host mx.far.test said: 550\n    Unknown user (in reply to end of\n    DATA command)',
    ),
    'failed 550 null message alive',
  ],
  [
    'the name of the server that said it',
    bounce(
      '<ada@far.test>: host spam-firewall.far.test said: 550 Unknown user (in reply to RCPT TO command)',
    ),
    'failed 550 null rcpt dead',
  ],
  [
    'a reply on the line after "said: 550"',
    bounce('<ada@far.test>: host mx.far.test said: 550\n    <ada@far.test>: User unknown'),
    'failed 550 null rcpt dead',
  ],
  ['a code with a colon', bounce('ada@far.test\n550: User unknown'), 'failed 550 null rcpt dead'],
  ['a time is no code', bounce('ada@far.test failed at 12:550 for good'), 'failed null null rcpt alive'],
  [
    'an address with dots behind it',
    bounce('Failed: ada@far.test\n  550 ada@far.test... User unknown'),
    'failed 550 null rcpt dead',
  ],
  [
    'a wrapped reply, the mildest',
    bounce("ada@far.test: 5.1.0 - Unknown address error 550-'5.7.1 User unknown'"),
    'failed 550 5.7.1 rcpt alive',
  ],
  [
    'a wrapped reply, the telling one',
    bounce("ada@far.test: 5.1.0 - Unknown address error 550-'5.1.1 User unknown'"),
    'failed 550 5.1.1 rcpt dead',
  ],
  [
    'text after the reply is not part of it',
    bounce('ada@far.test\n550 User unknown\n\nThis is from our spam filter, see the policy.'),
    'failed 550 null rcpt dead',
  ],
  [
    'words without a code are no permanent refusal',
    bounce('ada@far.test\nUser unknown'),
    'failed null null rcpt alive',
  ],
  [
    'OpenSMTPD without a status part',
    plain(
      'An error has occurred while attempting to deliver a message for\n\nada@far.test: Domain does not exist',
    ),
    'failed null null rcpt alive',
  ],
  [
    'a full mailbox, from no mail system',
    plain('Your mail could not be delivered to: <ada@far.test>\nAs their mailbox is full.'),
    'failed null null rcpt alive',
  ],
  [
    'given up',
    bounce('Delevery to the following recipients was aborted after 5.0 hour(s):\n * ada@far.test'),
    'failed null null rcpt alive',
  ],
  ['an ordinary mail', plain('See you at ada@far.test, room 550.'), null],
  [
    'an answer of a person',
    'From: ada@far.test\nSubject: Automatic reply: Hello\n\nI left; what you sent could not be delivered.\n',
    null,
  ],
  [
    'an answer by its field',
    'From: ada@far.test\nSubject: Hello\nAuto-Submitted: auto-replied\n\nYour mail was not delivered to me.\n',
    null,
  ],
]

for (const [name, mail, wanted] of worded)
  test(`check 47: a bounce in words is understood: ${name}`, () =>
    assert.equal(told(recipientsOf(mail)[0]), wanted))

function dsn(words: string, fields: string, type = 'message/delivery-status'): string {
  return (
    'From: MAILER-DAEMON@far.test\nContent-Type: multipart/report; boundary=b\n\n' +
    `--b\n${words}\n--b\nContent-Type: ${type}\n\nReporting-MTA: dns; far.test\n\n${fields}\n--b--\n`
  )
}

const failed = 'Final-Recipient: rfc822; ada@far.test\nAction: failed\n'
const iso2022 = Buffer.from('GyRCJWYhPCU2ITwbKEIgQWRhIBskQiQsOCskRCQrJGokXiQ7JHMbKEI=', 'base64').toString(
  'latin1',
)

const reported: [name: string, mail: string, wanted: string][] = [
  [
    '5.0.0, and the reply in the text alone',
    dsn('\n<ada@far.test>: 550 5.7.25 no reverse name', `${failed}Status: 5.0.0\n`),
    'failed 550 5.7.25 rcpt alive',
  ],
  [
    '5.0.0, and who is unknown in the text alone',
    dsn('\n<ada@far.test>: 550 User unknown', `${failed}Status: 5.0.0\n`),
    'failed 550 5.0.0 rcpt dead',
  ],
  [
    'a reply in the text alone',
    dsn(
      '\n<ada@far.test>: host mx said: 550 User unknown (in reply to end of DATA command)',
      `${failed}Status: 5.0.0\nDiagnostic-Code: smtp; 550 User unknown\n`,
    ),
    'failed 550 5.0.0 message alive',
  ],
  [
    'a status that says enough stands',
    dsn('\n<ada@far.test>: 550 5.1.1 User unknown', `${failed}Status: 5.2.1\n`),
    'failed null 5.2.1 rcpt alive',
  ],
  [
    'a wrapped reply in the diagnostic',
    dsn(
      '\n',
      `${failed}Status: 5.1.0\nDiagnostic-Code: smtp; 5.1.0 - Unknown address error 550-'5.7.1 <ada@far.test>: User unknown' (delivery attempts: 0)\n`,
    ),
    'failed 550 5.7.1 rcpt alive',
  ],
  [
    'a directory that has nobody of that name is no blocklist',
    dsn(
      '\n',
      `${failed}Status: 5.0.0\nDiagnostic-Code: X-Notes; User Ada (ada@far.test) not listed in Domino Directory\n`,
    ),
    'failed null 5.0.0 rcpt dead',
  ],
  [
    'a text in base64',
    dsn(
      `Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n${Buffer.from('<ada@far.test>: 550 User unknown').toString('base64')}`,
      `${failed}Status: 5.0.0\n`,
    ),
    'failed 550 5.0.0 rcpt dead',
  ],
  [
    'a text in a charset of its own',
    dsn(
      `Content-Type: text/plain; charset=iso-2022-jp\n\nada@far.test\n${iso2022}`,
      `${failed}Status: 5.0.0\n`,
    ),
    'failed null 5.0.0 rcpt dead',
  ],
  [
    'a status part in base64',
    dsn(
      '\n',
      Buffer.from(`Reporting-MTA: dns; far.test\n\n${failed}Status: 5.1.1\n`).toString('base64'),
      'message/delivery-status\nContent-Transfer-Encoding: base64',
    ).replace('Reporting-MTA: dns; far.test\n\n', ''),
    'failed null 5.1.1 rcpt dead',
  ],
]

for (const [name, mail, wanted] of reported)
  test(`check 47: a report is read: ${name}`, () => assert.equal(told(recipientsOf(mail)[0]), wanted))

test('RFC 6533: a report’s UTF-8 addresses are read, raw and in ASCII form', () => {
  const ascii = dsn(
    '\n',
    'Final-Recipient: utf-8; j\\x{F6}rg@b\\x{FC}cher.test\nAction: failed\nStatus: 5.1.1\n',
  )
  const utf8 = dsn(
    '\n',
    'Original-Recipient: utf-8; jörg@bücher.test\nAction: failed\nStatus: 5.1.1\n',
    'message/global-delivery-status\nContent-Transfer-Encoding: 8bit',
  )
  for (const mail of [ascii, utf8]) assert.deepEqual(recipientsOf(mail)[0]?.addresses, ['jörg@bücher.test'])
  const beyond = dsn('\n', 'Final-Recipient: utf-8; a\\x{110000}\\x{D800}@far.test\nAction: failed\n')
  assert.deepEqual(recipientsOf(beyond)[0]?.addresses, ['a\\x{110000}\uFFFD@far.test'])
})

const token = `bounce-${'a'.repeat(48)}@us.test`
const forwarded = `X-HmXmrOriginalRecipient: <ada@far.test>\nReturn-Path: <${token}>\nTo: undisclosed-recipients:;\nSubject: Hello\n\nx\n`
const jmrp = {
  attached: `From: staff@far.test\nSubject: complaint about message from 192.0.2.1\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n${forwarded}--b--\n`,
  'as text': `From: staff@far.test\nSubject: complaint\n\nA user has complained of this message:\n\n${forwarded}`,
}

for (const [name, mail] of Object.entries(jmrp))
  test(`a complaint without a feedback report is recognized: ${name}`, () => {
    assert.deepEqual(read(mail, 'feedback'), {
      kind: 'feedback',
      feedbackType: 'abuse',
      addresses: ['ada@far.test'],
      returnPaths: [token],
      userAgent: null,
      reportedBy: 'far.test',
      arrivedAt: null,
    })
    // At a return path, an out-of-office answer may attach our mail.
    assert.equal(read(mail, 'return_path'), null)
    assert.equal(read(mail.replace(token, 'bounce-1@us.test'), 'feedback'), null)
    // A return path in the text of the message itself is not trusted.
    assert.equal(
      read(mail.replace(`<${token}>`, '<>').replace('\n\nx\n', `\n\n${token}\n`), 'feedback'),
      null,
    )
  })
