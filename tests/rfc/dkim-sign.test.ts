// Independent verifiers check our DKIM signatures, and we reproduce the vectors of RFC 8463.
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { compose, type Draft } from '../../src/mail/write/compose.ts'
import { type DkimKey, generateDkimKey, signDkim } from '../../src/mailauth/dkim-sign.ts'
import { type DkimRecords, findJudges, mailauth } from '../support/dkim-judges.ts'

const at = new Date()
const keys: DkimKey[] = []
const records: DkimRecords = {}
const judges = findJudges()

before(async () => {
  for (const algorithm of ['rsa-sha256', 'ed25519-sha256'] as const) {
    const { privatePem, publicRecord } = await generateDkimKey(algorithm)
    const selector = algorithm.slice(0, 3)
    keys.push({ domain: 'posthorn.example', selector, algorithm, privateKey: createPrivateKey(privatePem) })
    records[`${selector}._domainkey.posthorn.example`] = publicRecord
  }
})

const draft: Draft = {
  from: { email: 'ann@posthorn.example', name: 'Ann Lee' },
  to: [{ email: 'bob@far.example', name: 'Böb' }],
  cc: [],
  replyTo: null,
  subject: 'Hello',
  text: 'Hi.\n',
  html: null,
  messageId: '<1@posthorn.example>',
  inReplyTo: null,
  references: [],
  date: at,
  headers: {},
  attachments: [],
  seed: 's',
}
const file = {
  filename: 'ü.bin',
  contentType: 'a/b',
  content: Buffer.alloc(99),
  contentId: null,
  disposition: 'attachment',
} as const
const references = Array.from({ length: 50 }, (_, index) => `<${index}@far.example>`)
const people = Array.from({ length: 50 }, (_, index) => ({
  email: `p${index}@far.example`,
  name: `Person, ${index}`,
}))

const head =
  'From: a@posthorn.example\r\nTo: b@far.example\r\nSubject: s\r\nDate: Sat, 21 Nov 2026 09:00:00 +0000\r\n'
const messages: [string, Buffer | string][] = [
  ['a plain text', compose(draft)],
  ['text, html and a file', compose({ ...draft, html: '<p>é</p>', attachments: [file] })],
  ['long folded fields', compose({ ...draft, subject: 'für alle '.repeat(90), references, to: people })],
  [
    'every field there is',
    compose({ ...draft, cc: draft.to, replyTo: draft.from, inReplyTo: '<0@far.example>', references }),
  ],
  ['hidden recipients', compose({ ...draft, to: [] })],
  ['an address in UTF-8', compose({ ...draft, to: [{ email: 'ü@far.example' }] })],
  ['no subject', compose({ ...draft, subject: '' })],
  ['an empty text', compose({ ...draft, text: '' })],
  ['an empty body', `${head}\r\n`],
  ['a body of empty lines', `${head}\r\n\r\n\r\n\r\n`],
  ['empty lines at the end', `${head}\r\nbody\r\n\r\n\r\n`],
  ['white space in the body', `${head}\r\n a  b\t\tc \t d \r\n\t\r\n \r\ne\t\r\n \r\n`],
  ['dots in the body', `${head}\r\n.\r\n..\r\n.x\r\n`],
  ['white space around values, and none', `${head}Message-ID: \t <1@a>  \r\nCc:x@y.example\r\n\r\nbody\r\n`],
  ['fields folded with tabs', `${head}References: <1@a>\r\n\t<2@a>\r\n \t <3@a>\r\n\r\nbody\r\n`],
  ['fields in odd case', `${head}MESSAGE-id: <1@a>\r\nmime-VERSION: 1.0\r\n\r\nbody\r\n`],
  [
    'a field of one name twice',
    `${head}Reply-To: one@x.example\r\nX-A: b\r\nReply-To: two@x.example\r\n\r\nbody\r\n`,
  ],
  ['8-bit bytes', Buffer.from(`${head}\r\n\xfc\xff \xa0\r\n`, 'latin1')],
]

for (const judge of judges) {
  test(`check 43: ${judge.name} accepts ${messages.length} messages${judge.knowsEd25519 ? ', with Ed25519 too' : ''}`, async () => {
    for (const use of judge.knowsEd25519 ? [keys.slice(0, 1), keys.slice(1), keys] : [keys.slice(0, 1)]) {
      const signed = await Promise.all(
        messages.map(async ([, message]) => {
          const bytes = Buffer.from(message as Buffer)
          return Buffer.concat([await signDkim(bytes, use, at), bytes])
        }),
      )
      const verdicts = await judge.verify(signed, records)
      const refused = messages.filter((_, index) => !verdicts[index]).map(([what]) => what)
      assert.deepEqual(refused, [], use.map(({ algorithm }) => algorithm).join(' and '))
    }
  })

  test(`check 43: ${judge.name} refuses a changed or extended message`, async () => {
    const message = compose({ ...draft, text: 'one two' })
    const signature = (await signDkim(message, keys.slice(0, 1), at)).toString()
    const forgeries: [string, string][] = [
      ['another word in the body', message.toString().replace('one two', 'one tWo')],
      ['another subject', message.toString().replace('Hello', 'Hallo')],
      ...['From', 'To', 'Subject', 'Cc', 'Reply-To', 'Date', 'Content-Type'].map((name): [string, string] => [
        `one ${name} more`,
        `${name}: x@evil.example\r\n${message}`,
      ]),
    ]
    const verdicts = await judge.verify(
      forgeries.map(([, forged]) => Buffer.from(signature + forged)),
      records,
    )
    assert.deepEqual(
      forgeries.filter((_, index) => verdicts[index]).map(([what]) => what),
      [],
    )
  })
}

interface Parts {
  fields: string[]
  body: string
}

/** RFC 6376 3.4.2 and 3.4.4: relays change these, and the canonicalization `relaxed` ignores them. */
const normalizations: [string, (parts: Parts) => Parts][] = [
  ['each field on one line', inFields((field) => field.replace(/\r\n[ \t]+/g, ' '))],
  ['fields folded at each space', inFields((field) => field.replace(/(?<=:.*) (?=\S)/g, '\r\n\t'))],
  ['names in small letters', inFields((field) => field.replace(/^[^:]+/, (name) => name.toLowerCase()))],
  ['more white space after names', inFields((field) => field.replace(':', ': \t '))],
  [
    'white space at the ends of body lines',
    ({ fields, body }) => ({ fields, body: body.replaceAll('\r\n', ' \t\r\n') }),
  ],
  ['empty lines at the end', ({ fields, body }) => ({ fields, body: `${body}\r\n\r\n` })],
]

function inFields(change: (field: string) => string): (parts: Parts) => Parts {
  return ({ fields, body }) => ({ fields: fields.map(change), body })
}

function changed(raw: Buffer, change: (parts: Parts) => Parts): Buffer {
  const text = raw.toString('latin1')
  const end = text.indexOf('\r\n\r\n')
  const { fields, body } = change({
    fields: text.slice(0, end).split(/\r\n(?![ \t])/),
    body: text.slice(end + 4),
  })
  return Buffer.from(`${fields.join('\r\n')}\r\n\r\n${body}`, 'latin1')
}

for (const judge of judges)
  test(`check 44: ${judge.name} accepts a message that relays have normalized`, async () => {
    const composed = messages.slice(0, 4)
    const copies = await Promise.all(
      composed.flatMap(([, message]) =>
        normalizations.map(async ([how, change]) => {
          const bytes = Buffer.from(message as Buffer)
          const signed = Buffer.concat([await signDkim(bytes, keys.slice(0, 1), at), bytes])
          const copy = changed(signed, change)
          assert.notDeepEqual(copy, signed, how)
          return copy
        }),
      ),
    )
    const verdicts = await judge.verify(copies, records)
    assert.equal(copies.length, composed.length * normalizations.length)
    const refused = copies.filter((_, index) => !verdicts[index]).map(String)
    assert.deepEqual(refused, [])
  })

test('check 44: a composed message has only 7-bit bytes, so no relay encodes it anew', () => {
  const long = {
    ...draft,
    subject: 'für alle',
    text: 'ä ö ü 🙂\n'.repeat(500),
    html: '<p>é</p>',
    attachments: [file],
  }
  assert.ok(compose(long).every((byte) => byte < 128))
})

const vectors = `${process.env.POSTHORN_TESTDATA ?? '../shared/testdata'}/dkim-chasquid/01-rfc8463`

test('check 43: the key of RFC 8463 A signs its message, and its record verifies it', async (context) => {
  if (!existsSync(`${vectors}.msg`)) {
    assert.ok(!process.env.CI, `${vectors}.msg is missing`)
    context.skip(`no ${vectors}.msg: set POSTHORN_TESTDATA`)
    return
  }
  const given = readFileSync(`${vectors}.msg`, 'latin1').replace(/\r?\n/g, '\r\n')
  const message = Buffer.from(given.slice(given.indexOf('From: Joe')), 'latin1')
  // RFC 8463 A.2: the private key, as 32 bytes, after the prefix that makes it PKCS#8 (RFC 8410 7).
  const secret = Buffer.from('nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=', 'base64')
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secret])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const key: DkimKey = {
    domain: 'football.example.com',
    selector: 'brisbane',
    algorithm: 'ed25519-sha256',
    privateKey,
  }
  const signature = await signDkim(message, [key], new Date(1528637909_000))
  // RFC 8463 A.3: the body hash of the signed message.
  assert.match(signature.toString(), /bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;/)
  const record = {
    'brisbane._domainkey.football.example.com':
      'v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
  }
  assert.deepEqual(await mailauth.verify([Buffer.concat([signature, message])], record), [true])
})
