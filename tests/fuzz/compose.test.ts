// Three independent parsers read from our composed mail exactly what any draft says.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { compose, type Draft, type DraftAttachment } from '../../src/mail/write/compose.ts'
import { type MailReader, openReaders, type ReadMail } from '../support/mail-readers.ts'

const readers = openReaders()
after(() => {
  for (const reader of readers) reader.close()
})

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31)
const factor = Number(process.env.FUZZ_FACTOR ?? 1)
const runs = (count: number) => ({ numRuns: count * factor, seed })

// QUIRK: postal-mime removes a byte order mark at the start of an encoded-word or a part.
const left = /[\r\n\0\ufeff]/g
const special = fc.constantFrom(
  ...[
    ' ',
    '  ',
    '"',
    '\\',
    ',',
    ';',
    ':',
    '<',
    '>',
    '@',
    '(',
    ')',
    '[',
    ']',
    '=?',
    '?=',
    '=?utf-8?q?x?=',
    '=',
    '_',
    '.',
    "'",
  ],
  ...[
    '\t',
    '%',
    '%41',
    '*',
    "''",
    'é',
    'ß',
    '漢字',
    '🦄',
    '👩‍👩‍👧',
    '\u202e',
    'عربي',
    '\u2028',
    '\u00a0',
    'From ',
    '-- ',
  ],
  ...[
    'a@evil.example',
    '<a@evil.example>',
    'Re:',
    'word',
    'X'.repeat(80),
    '&amp;',
    '/',
    '..',
    '$&',
    '\x07',
    '\x7f',
    '\x0b',
  ],
)
const character = fc.oneof(
  { weight: 4, arbitrary: fc.string({ minLength: 1, maxLength: 1 }) },
  { weight: 2, arbitrary: special },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }) },
)
const oneLine = (maxLength: number) =>
  fc.array(character, { maxLength }).map((pieces) => pieces.join('').replace(left, '').toWellFormed())
const manyLines = fc
  .array(
    fc.oneof(
      oneLine(200),
      fc.constantFrom('.', '..', '', ' ', 'From me', '--', 'x'.repeat(2000), 'é'.repeat(700)),
    ),
  )
  .chain((lines) => fc.constantFrom('\n', '\r\n', '\r').map((lineEnd) => lines.join(lineEnd)))

const email = fc.constantFrom(
  'a@good.example',
  'first.last+tag@sub.good.example',
  "o'neil@x.example",
  `"a b"@q.example`,
)
const mailbox = fc.record({ email, name: oneLine(40) }, { noNullPrototype: true })
const token = fc.stringMatching(/^[a-z][a-z0-9.+-]{0,20}$/)
const attachment: fc.Arbitrary<DraftAttachment> = fc
  .record({
    // QUIRK: mailparser decodes encoded-words anywhere in a file name.
    filename: oneLine(60).filter((name) => name.trim() !== '' && !name.includes('=?')),
    contentType: fc
      .tuple(fc.constantFrom('image', 'application', 'text'), token)
      .map(([type, sub]) => `${type}/${sub}`),
    content: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    contentId: fc.option(fc.stringMatching(/^[a-z0-9]{1,20}@[a-z]{1,20}$/)),
  })
  .chain((fields) =>
    fc.constantFrom('attachment', 'inline').map((disposition) => ({ ...fields, disposition }) as const),
  )

const draft: fc.Arbitrary<Draft> = fc.record({
  from: mailbox,
  to: fc.array(mailbox, { minLength: 1, maxLength: 4 }),
  cc: fc.array(mailbox, { maxLength: 2 }),
  replyTo: fc.option(mailbox),
  subject: oneLine(120),
  text: fc.option(manyLines),
  html: fc.option(manyLines.map((text) => `<p>${text}</p>`)),
  messageId: fc.constant('<0123456789@good.example>'),
  inReplyTo: fc.constant(null),
  references: fc.constant([]),
  date: fc.constant(new Date('2026-11-21T10:00:00Z')),
  headers: fc.dictionary(fc.constantFrom('x-campaign', 'x-campaign-id', 'x-entity-ref-id'), oneLine(200)),
  attachments: fc.array(attachment, { maxLength: 3 }),
  seed: fc.string(),
})

const plain: Draft = {
  from: { email: 'a@good.example' },
  to: [{ email: 'b@good.example' }],
  cc: [],
  replyTo: null,
  subject: 's',
  text: 't',
  html: null,
  messageId: '<1@good.example>',
  inReplyTo: null,
  references: [],
  date: new Date(0),
  headers: {},
  attachments: [],
  seed: 'x',
}

function expectWire(raw: Buffer): void {
  const wire = raw.toString('latin1')
  assert.doesNotMatch(wire, /[^\r]\n|\r[^\n]|[\0\x80-\xff]/, 'CRLF and ASCII only')
  const lines = wire.split('\r\n')
  assert.ok(lines.every((line) => line.length <= 998))
  for (const line of lines.slice(0, lines.indexOf(''))) {
    assert.ok(line.trim() !== '', 'no header line of white space')
    // RFC 5322 2.1.1: up to 78 characters, unless one word alone is longer.
    const [, word] = /^(?:[A-Za-z-]+:)? (\S+)$/.exec(line) ?? []
    assert.ok(line.length <= 78 || (word ?? '').length > 75, line)
    if (!line.includes('=?UTF-8?')) continue
    assert.ok(line.length <= 76, line)
    for (const word of line.match(/=\?UTF-8\?[QB]\?[^?]*\?=/g)!) assert.ok(word.length <= 75)
  }
}

async function expectAll(raw: Buffer, view: (mail: ReadMail) => unknown, expected: unknown): Promise<void> {
  for (const reader of readers) {
    const actual = view(await reader.read(raw))
    assert.equal(JSON.stringify(actual), JSON.stringify(expected), `${reader.name} reads something else`)
  }
}

test('check 39: the header has exactly the intended fields', async () => {
  await fc.assert(
    fc.property(draft, (one) => {
      const raw = compose(one)
      expectWire(raw)
      const header = raw.toString('latin1').split('\r\n\r\n')[0]!
      const names = header.split(/\r\n(?![ \t])/).map((field) => field.slice(0, field.indexOf(':')))
      const meant = [
        'Date',
        'From',
        'To',
        ...(one.cc.length > 0 ? ['Cc'] : []),
        ...(one.replyTo ? ['Reply-To'] : []),
      ]
      const content =
        names.at(-1) === 'Content-Type' ? ['Content-Type'] : ['Content-Type', 'Content-Transfer-Encoding']
      const others = Object.keys(one.headers)
      assert.deepEqual(names, [...meant, 'Subject', 'Message-ID', ...others, 'MIME-Version', ...content])
    }),
    runs(300),
  )
})

test('check 40: subject, names and addresses read back unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(draft, async (one) => {
      const raw = compose({
        ...plain,
        from: one.from,
        to: one.to,
        cc: one.cc,
        replyTo: one.replyTo,
        subject: one.subject,
      })
      const view = ({ subject, from, to, cc, replyTo }: ReadMail) => ({ subject, from, to, cc, replyTo })
      const { subject, from, to, cc, replyTo } = one
      await expectAll(raw, view, { subject, from: [from], to, cc, replyTo: replyTo ? [replyTo] : [] })
    }),
    runs(300),
  )
})

test('check 42: text and html read back unchanged', async () => {
  // QUIRK: postal-mime sometimes treats the line end before a boundary as part of the body.
  const ends = (reader: MailReader) => (reader.name === 'postal-mime' ? /\n+$/ : /\n$/)
  await fc.assert(
    fc.asyncProperty(draft, async ({ text, html, seed: one }) => {
      const raw = compose({ ...plain, text, html, seed: one })
      expectWire(raw)
      for (const reader of readers) {
        const unix = (given: string | null) => (given ?? '').replace(/\r\n?/g, '\n').replace(ends(reader), '')
        const mail = await reader.read(raw)
        assert.equal(unix(mail.text), unix(text), `${reader.name} reads another text`)
        assert.equal(unix(mail.html), unix(html), `${reader.name} reads other HTML`)
      }
    }),
    runs(200),
  )
})

test('check 39, 63: attachments read back unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(draft, async ({ attachments, html }) => {
      const raw = compose({ ...plain, html, attachments })
      expectWire(raw)
      const key = ({ filename, content }: ReadMail['attachments'][number]) =>
        `${filename} ${content.toString('hex')}`
      const sorted = (list: ReadMail['attachments']) =>
        list.sort((one, other) => (key(one) < key(other) ? -1 : 1))
      const meant = attachments.map(({ filename, contentType, contentId, content }) => ({
        filename,
        contentType,
        contentId,
        content,
      }))
      await expectAll(raw, (mail) => sorted(mail.attachments), sorted(meant))
    }),
    runs(200),
  )
})

test('the same draft gives the same bytes', () => {
  fc.assert(
    fc.property(draft, (one) => compose(one).equals(compose(structuredCloneOf(one)))),
    runs(50),
  )
})

function structuredCloneOf(one: Draft): Draft {
  const attachments = one.attachments.map((each) => ({ ...each, content: Buffer.from(each.content) }))
  return { ...structuredClone({ ...one, attachments: [] }), attachments }
}

test('check 39: CR, LF and NUL never get into a field', () => {
  const bad = fc.tuple(
    fc.string(),
    fc.constantFrom('\r', '\n', '\0', '\r\n', '\r\nBcc: x@evil.example'),
    fc.string(),
  )
  const target = fc.constantFrom(
    'subject',
    'name',
    'email',
    'header',
    'headerName',
    'filename',
    'contentId',
    'messageId',
  )
  fc.assert(
    fc.property(bad, target, ([before, lineBreak, after], where) => {
      const value = before + lineBreak + after
      assert.throws(() => compose(withBad(value, where)), { name: 'Error' })
    }),
    runs(300),
  )
})

function withBad(value: string, where: string): Draft {
  const file = {
    filename: 'f',
    contentType: 'a/b',
    content: Buffer.alloc(1),
    contentId: null,
    disposition: 'attachment',
  } as const
  if (where === 'subject' || where === 'messageId') return { ...plain, [where]: value }
  if (where === 'header') return { ...plain, headers: { 'x-campaign': value } }
  if (where === 'headerName') return { ...plain, headers: { [`x-${value}`]: 'x' } }
  if (where === 'filename' || where === 'contentId')
    return { ...plain, attachments: [{ ...file, [where]: value }] }
  return { ...plain, to: [{ email: 'a@good.example', [where]: value }] }
}
