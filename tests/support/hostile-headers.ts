// For any received header, a reply is sent or refused with a reason, and parsers read it as it was meant.
import { domainToASCII } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { replyRecipients, replyReferences, replySubject } from '../../src/flow/sending/reply-draft.ts'
import { addressTo } from '../../src/flow/sending/send-draft.ts'
import type { Mailbox } from '../../src/mail/address.ts'
import { type ParsedMail, parseMail } from '../../src/mail/read/parse.ts'
import { compose } from '../../src/mail/write/compose.ts'
import type { MessageRow } from '../../src/store/mailbox/messages.ts'
import { type MailReader, openReaders, type ReadMail } from './mail-readers.ts'

const base64 = (bytes: Buffer) => bytes.toString('base64')
const hidden = fc.constantFrom(
  ...[
    '\r\nBcc: evil@evil.example',
    '\n',
    '\r',
    '\0',
    '\x1b[2J',
    '\x7f',
    '\x85',
    '\u2028',
    '\u2029',
    '\r\n\r\n<p>body',
  ],
  ...[
    '\ud800',
    '\udc00x',
    '\u202e',
    '\u{1f600}',
    '漢字',
    'é',
    '\ufffd',
    '"',
    '\\',
    '<a@b.example>',
    ',',
    ';',
    '(',
    '=?',
    '?=',
  ],
)
const text = fc
  .array(fc.oneof(hidden, fc.string({ maxLength: 12 })), { maxLength: 6 })
  .map((parts) => parts.join(''))

/** As one encoded word, in a charset that can hide half a character too. */
const encodedWord = fc.oneof(
  text.map((given) => `=?utf-8?B?${base64(Buffer.from(given))}?=`),
  text.map((given) => `=?utf-16le?b?${base64(Buffer.from(given, 'utf16le'))}?=`),
  text.map((given) => `=?utf-8?Q?${Buffer.from(given).toString('hex').replace(/../g, '=$&')}?=`),
  fc.constantFrom(
    '=?iso-8859-1?Q?Fr\xf6sche?=',
    '=?utf-7?q?+2AA-?=',
    '=?x?q?=0D=0A?=',
    '=?utf-8?q?',
    '=?utf-8?b?DQo=',
    '?=',
  ),
)
/** Raw header text: no NUL, and no line break without folding (the MX refuses those). */
const raw = text.map((given) => Buffer.from(given.replace(/[\r\n\0]/g, ' ')).toString('latin1'))
const word = fc.oneof(
  encodedWord,
  raw,
  fc.constantFrom(
    'x'.repeat(998),
    'ж'.repeat(400),
    'Re: ',
    'RE :re:',
    '\r\n ',
    '\r\n\t',
    '',
    ' ',
    'word',
    '\xff\xfe',
    '\x01',
  ),
)
const words = fc.array(word, { maxLength: 6 }).map((parts) => parts.join(' '))

const address = fc.constantFrom(
  ...[
    'ada@good.example',
    'First.Last+tag@sub.good.example',
    '"a b"@good.example',
    '"a\\"b"@good.example',
    'jörg@good.example',
  ],
  ...[
    'ada@b\xc3\xbccher.example',
    'a@b_c.example',
    'a',
    '@b',
    'a@',
    '"a\x01b"@good.example',
    'a\x01b@good.example',
  ],
  ...[
    `${'a'.repeat(64)}@good.example`,
    `${'a'.repeat(65)}@good.example`,
    'a@[127.0.0.1]',
    '@relay.example:a@good.example',
  ],
)
const mailbox = fc.oneof(
  address,
  fc.tuple(words, address).map(([name, email]) => `${name} <${email}>`),
  fc.tuple(text, address).map(([name, email]) => `"${quotable(name)}" <${email}>`),
  fc.tuple(address, text).map(([email, name]) => `${email} (${quotable(name)})`),
)
const mailboxes = fc.oneof(
  mailbox,
  fc.array(mailbox, { maxLength: 4 }).map((list) => list.join(', ')),
  fc.tuple(words, mailbox).map(([name, member]) => `${name}: ${member};`),
  fc.constantFrom('', 'undisclosed-recipients:;', ';', ',', '<>', '(', '"'),
)
const id = fc.oneof(
  fc.constantFrom(
    '<1@good.example>',
    '<\x01@a>',
    '<a b@c>',
    '<>',
    '<é@a.example>',
    'bare@a.example',
    `<${'x'.repeat(950)}@a>`,
  ),
  words.map((given) => `<${given}>`),
)
const references = fc.oneof(
  fc.array(id, { maxLength: 5 }).map((ids) => ids.join('\r\n ')),
  fc
    .integer({ min: 1, max: 300 })
    .map((count) => Array.from({ length: count }, (_, n) => `<${n}@a.example>`).join('\r\n ')),
)

function quotable(given: string): string {
  return Buffer.from(given.replace(/[\r\n\0"\\()]/g, ' ')).toString('latin1')
}

export interface HostileMail {
  /** Bytes in Latin-1. Each field is absent, present, or present twice. */
  header: string
  /** The sender of the envelope; empty for the null sender. */
  from: string
}

const fieldValues = {
  From: mailboxes,
  'Reply-To': mailboxes,
  To: mailboxes,
  Cc: mailboxes,
  Subject: words,
  'Message-ID': id,
  'In-Reply-To': references,
  References: references,
}
const header = fc
  .tuple(
    ...Object.entries(fieldValues).map(([name, value]) =>
      fc.array(
        value.map((given) => `${name}: ${given}\r\n`),
        { maxLength: 2 },
      ),
    ),
  )
  .map((fields) => fields.flat().join(''))
export const hostileMail: fc.Arbitrary<HostileMail> = fc.record({
  header,
  from: fc.constantFrom('', 'envelope@good.example'),
})

const own: Mailbox = { email: 'agent@inbox.test', name: 'Agent' }

/** The message as filing stores it, with the fields that a reply uses. */
function filed(mail: ParsedMail, envelopeFrom: string): MessageRow {
  const { to, cc, replyTo, inReplyTo, subject } = mail
  return {
    direction: 'inbound',
    sender: mail.from ?? { email: envelopeFrom },
    subject,
    inReplyTo,
    recipients: { to, ...(cc.length > 0 && { cc }), ...(replyTo && { replyTo }) },
    internetMessageId: mail.messageId ?? '<made@inbox.test>',
    referenceIds: mail.references,
  } as unknown as MessageRow
}

interface Answer {
  raw: Buffer
  inReplyTo: string
  subject: string
  to: Mailbox[]
  cc: Mailbox[]
}

/** The reply to all, made by the service's functions. Null if it has no recipient. */
function answerTo({ header, from }: HostileMail): Answer | null {
  const target = filed(parseMail(Buffer.from(`${header}\r\nbody\r\n`, 'latin1')), from)
  const addressed = replyRecipients(target, own.email, 'all')
  const { to, cc, recipients } = addressTo(addressed)
  if (recipients.length === 0) return null
  const subject = replySubject(target.subject)
  const raw = compose({
    from: own,
    to,
    cc,
    replyTo: null,
    subject,
    text: 'T',
    html: null,
    messageId: '<answer@inbox.test>',
    inReplyTo: target.internetMessageId,
    references: replyReferences(target),
    date: new Date(0),
    headers: {},
    attachments: [],
    seed: 'x',
  })
  return { raw, inReplyTo: target.internetMessageId, subject, to, cc }
}

const known = [
  'date',
  'from',
  'to',
  'cc',
  'subject',
  'message-id',
  'in-reply-to',
  'references',
  'mime-version',
]

/**
 * The fault in the header's lines. Null if it has each of these fields once, in lines of legal length, and names the replied
 * message if its id can be written.
 */
export function faultOfHeader(
  raw: Buffer,
  inReplyTo: string,
  further: readonly string[] = [],
): string | null {
  const [header = ''] = raw.toString('latin1').split('\r\n\r\n')
  if (/[^\r]\n|\r[^\n]|\0/.test(header)) return 'a bare line end or NUL'
  if (header.split('\r\n').some((line) => line.length > 998 || line.trim() === ''))
    return 'a line too long or empty'
  const names = header.split(/\r\n(?![ \t])/).map((field) => field.slice(0, field.indexOf(':')).toLowerCase())
  const allowed = [...known, 'content-type', 'content-transfer-encoding', ...further]
  const strange = names.find((name, index) => !allowed.includes(name) || names.indexOf(name) !== index)
  if (strange !== undefined) return `the field ${strange}`
  const isWritable = inReplyTo.length <= 900 && /^<[\x21-\x3b\x3d\x3f-\x7e]+>$/.test(inReplyTo)
  const unfolded = `${header.replace(/\r\n[ \t]/g, ' ')}\r\n`
  const isNamed = unfolded.includes(`\r\nIn-Reply-To: ${inReplyTo}\r\n`)
  const [, chain = ''] = /\r\nReferences: ([^\r]*)/.exec(unfolded) ?? []
  if (isNamed && !chain.endsWith(inReplyTo)) return `References are ${chain}`
  return isNamed === isWritable ? null : `In-Reply-To is not ${inReplyTo}`
}

/** The difference between the reply as a parser reads it and as it was meant. Null if there is none. */
export async function faultOfReading(
  reader: MailReader,
  raw: Buffer,
  meant: { subject: string; to: Mailbox[]; cc?: Mailbox[] },
): Promise<string | null> {
  // QUIRK: Python's parser reads a header as ASCII unless its policy allows UTF-8 (RFC 6532).
  if (reader.name.startsWith('Python') && /[\x80-\xff]/.test(raw.toString('latin1').split('\r\n\r\n')[0]!))
    return null
  const read = await reader.read(raw)
  // QUIRK: postal-mime removes a byte order mark at the beginning of any encoded word.
  const shown = (list: { email: string; name?: string }[]) =>
    list.map(({ email, name = '' }) => [bare(email), name.replaceAll('\ufeff', '')])
  const view = ({ subject, to, cc = [] }: Pick<ReadMail, 'subject' | 'to'> & Partial<ReadMail>) => [
    ...[subject.replaceAll('\ufeff', ''), shown(to), shown(cc)],
  ]
  const [found, wanted] = [view(read), view(meant as ReadMail)]
  return isDeepStrictEqual(found, wanted)
    ? null
    : `${reader.name} reads ${JSON.stringify(found)}, meant was ${JSON.stringify(wanted)}`
}

/** Readers differ: some remove the quotes of a local part, some decode the letters of a domain. */
function bare(email: string): string {
  const at = email.lastIndexOf('@')
  const localPart = email.slice(0, at).replace(/^"|"$|\\(?=.)/g, '')
  return `${localPart}@${domainToASCII(email.slice(at + 1))}`
}

/**
 * Makes `count` headers, replies to each, and has three parsers read the replies. `failed` names the fault of each header. A
 * reply without a recipient is refused with a reason, which is no failure.
 */
export async function repliesReadBack(
  count: number,
  seed: number,
): Promise<{ cases: number; answered: number; failed: string[] }> {
  const readers = openReaders()
  const failed: string[] = []
  let answered = 0
  try {
    for (const mail of fc.sample(hostileMail, { numRuns: count, seed })) {
      const fault = await judge(mail, readers).catch((error: Error) => error.message)
      if (fault !== null && fault !== '') failed.push(`${fault}\nfor ${JSON.stringify(mail)}`)
      if (fault !== '') answered++
    }
  } finally {
    for (const reader of readers) reader.close()
  }
  return { cases: count, answered, failed }
}

/** Empty if there was no recipient. */
async function judge(mail: HostileMail, readers: MailReader[]): Promise<string | null> {
  const answer = answerTo(mail)
  if (answer === null) return ''
  const fault = faultOfHeader(answer.raw, answer.inReplyTo)
  if (fault !== null) return fault
  for (const reader of readers) {
    const misread = await faultOfReading(reader, answer.raw, answer)
    if (misread !== null) return misread
  }
  return null
}
