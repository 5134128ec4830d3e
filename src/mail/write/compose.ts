// Composes a message from a draft as a pure function, so that the same draft gives the same bytes at every retry.

import { createHash } from 'node:crypto'
import type { Mailbox } from '../address.ts'
import { type EncodedBody, encodeBase64, encodeText, isSafeAsItIs } from './body-encode.ts'
import { dateTime } from './date-time.ts'
import { addressField, fallbackParameter, fold, parameter, unstructuredField } from './header-encode.ts'

export interface DraftAttachment {
  filename: string
  /** `type/subtype`, with or without parameters. Anything else becomes `application/octet-stream`. */
  contentType: string
  content: Buffer
  /** Without angle brackets. */
  contentId: string | null
  disposition: 'attachment' | 'inline'
}

export interface Draft {
  from: Mailbox
  to: readonly Mailbox[]
  cc: readonly Mailbox[]
  replyTo: Mailbox | null
  subject: string
  text: string | null
  html: string | null
  /** With angle brackets, as are the other message ids. */
  messageId: string
  inReplyTo: string | null
  references: readonly string[]
  date: Date
  /** Additional fields, except those that `compose` writes itself. */
  headers: Readonly<Record<string, string>>
  attachments: readonly DraftAttachment[]
  /** The type of a report whose content is the attachments (RFC 6522 3). Absent: an ordinary mail. */
  reportType?: string
  /** Determines the boundaries. Each message needs its own seed. */
  seed: string
}

/**
 * The message's final bytes: CRLF line ends, lines of at most 998 bytes, ASCII only unless an address needs SMTPUTF8.
 * Throws a plain Error if a value would break out of its field. Callers should refuse such values before.
 */
export function compose(draft: Draft): Buffer {
  const chunks: Buffer[] = []
  writePart(buildBody(draft), headerFields(draft), chunks)
  return Buffer.concat(chunks)
}

interface Leaf extends EncodedBody {
  /** Fields before Content-Transfer-Encoding, each ending in CRLF. */
  fields: string
}

interface Multipart {
  boundary: string
  fields: string
  parts: Part[]
}

type Part = Leaf | Multipart

function headerFields(draft: Draft): string {
  // RFC 5322 3.6: Date and From are required, and each of these fields occurs at most once.
  return [
    `Date: ${dateTime(draft.date)}\r\n`,
    addressField('From', [draft.from]),
    destinationFields(draft),
    draft.replyTo ? addressField('Reply-To', [draft.replyTo]) : '',
    unstructuredField('Subject', draft.subject),
    fold('Message-ID', [ownMessageId(draft.messageId)]),
    draft.inReplyTo && isMessageId(draft.inReplyTo) ? fold('In-Reply-To', [draft.inReplyTo]) : '',
    referencesField(draft.references),
    ...Object.entries(draft.headers).map(([name, value]) => furtherField(name, value)),
    'MIME-Version: 1.0\r\n',
  ].join('')
}

function destinationFields({ to, cc }: Draft): string {
  // The message has only hidden recipients. Some filters treat a message without any destination as spam.
  if (to.length === 0 && cc.length === 0) return 'To: undisclosed-recipients:;\r\n'
  return (to.length > 0 ? addressField('To', to) : '') + (cc.length > 0 ? addressField('Cc', cc) : '')
}

const maxMessageIdChars = 900
const maxReferencesChars = 4000

/** Foreign ids come from the answered mail. An id that cannot be written on a line is left out. */
function isMessageId(id: string): boolean {
  return id.length <= maxMessageIdChars && /^<[\x21-\x3b\x3d\x3f-\x7e]+>$/.test(id)
}

function ownMessageId(id: string): string {
  if (!isMessageId(id)) throw new Error('a draft has no valid message id')
  return id
}

/** The first id, which identifies the conversation, and as many of the last ids as fit. */
function referencesField(references: readonly string[]): string {
  const [first, ...rest] = references.filter(isMessageId)
  if (!first) return ''
  let chars = first.length
  let kept = rest.length
  while (kept > 0 && (chars += rest[kept - 1]!.length + 1) <= maxReferencesChars) kept--
  return fold('References', [first, ...rest.slice(kept)])
}

const ownFields =
  /^(?:date|from|sender|to|cc|bcc|reply-to|subject|message-id|in-reply-to|references|mime-version|content-.*)$/i

function furtherField(name: string, value: string): string {
  // RFC 5322 3.6: a second From, Subject or the like would let two readers see different messages.
  if (!/^[A-Za-z0-9-]{1,70}$/.test(name) || ownFields.test(name))
    throw new Error('a draft has a forbidden field')
  return unstructuredField(name, value)
}

function buildBody(draft: Draft): Part {
  const { inlines, others } = splitInlines(draft)
  const boundary = (kind: string) => makeBoundary(draft.seed, kind)
  const versions: Part[] = []
  if (draft.text !== null) versions.push(textPart('text/plain', draft.text))
  if (draft.html !== null) {
    const html = textPart('text/html', draft.html)
    const parts = [html, ...inlines.map(attachmentPart)]
    // RFC 2387 3.1: the root's type is a required parameter.
    versions.push(inlines.length === 0 ? html : multipart('related', boundary, parts, ['type="text/html"']))
  }
  const attachments = others.map(attachmentPart)
  if (versions.length === 0 && attachments.length === 0) return textPart('text/plain', '')
  // RFC 2046 5.1.4: the plainest version first, the richest last.
  const body = versions.length > 1 ? [multipart('alternative', boundary, versions)] : versions
  if (attachments.length === 0) return body[0]!
  const parts = [...body, ...attachments]
  if (draft.reportType === undefined) return multipart('mixed', boundary, parts)
  // RFC 6522 3: the first part is for people. The report follows.
  return multipart('report', boundary, parts, [`report-type=${draft.reportType}`])
}

/** Separates the attachments that the HTML refers to by content id from the others. */
function splitInlines({ html, attachments }: Draft): {
  inlines: DraftAttachment[]
  others: DraftAttachment[]
} {
  const isInline = (one: DraftAttachment) =>
    html !== null && one.disposition === 'inline' && one.contentId !== null
  return { inlines: attachments.filter(isInline), others: attachments.filter((one) => !isInline(one)) }
}

function makeBoundary(seed: string, kind: string): string {
  // RFC 2045 6.7: "=_" never occurs in quoted-printable or base64. Text that contains it is not sent unencoded.
  return `=_${createHash('sha256').update(`${kind} ${seed}`).digest('hex').slice(0, 32)}`
}

function multipart(
  kind: 'alternative' | 'related' | 'mixed' | 'report',
  makeBoundaryOf: (kind: string) => string,
  parts: Part[],
  parameters: string[] = [],
): Multipart {
  const boundary = makeBoundaryOf(kind)
  return {
    boundary,
    parts,
    fields: typeField(`multipart/${kind}`, [...parameters, `boundary="${boundary}"`]),
  }
}

function textPart(type: string, text: string): Leaf {
  return { fields: typeField(type, ['charset=utf-8']), ...encodeText(text) }
}

function attachmentPart(attachment: DraftAttachment): Leaf {
  const { filename, contentId, disposition } = attachment
  const { type, parameters, body } = encodeAttachment(attachment)
  const names = filename === '' ? [] : parameter('filename', filename)
  const fallback = filename === '' ? [] : [fallbackParameter('name', filename)]
  if (contentId !== null && !isMessageId(`<${contentId}>`))
    throw new Error('a draft has an invalid content id')
  const fields = [
    typeField(type, [...parameters, ...fallback]),
    contentId === null ? '' : fold('Content-ID', [`<${contentId}>`]),
    fold('Content-Disposition', withSemicolons([disposition, ...names])),
  ]
  return { fields: fields.join(''), ...body }
}

// RFC 2045 5.1: a token.
const token = "[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}"
const contentTypePattern = new RegExp(
  `^(${token}/${token})((?: *; *${token}=(?:${token}|"[ !#-\\[\\]-~]{0,70}"))*)$`,
)

function encodeAttachment({ contentType, content }: DraftAttachment) {
  const [, type = octetStream, rest = ''] = contentTypePattern.exec(contentType) ?? []
  // RFC 2046 5.2.1: message and multipart must not be encoded. A message is sent unchanged or as octet-stream.
  const text = /^message\//i.test(type) ? content.toString('latin1') : null
  if (text !== null && !/\r(?!\n)|(?<!\r)\n/.test(text) && isSafeAsItIs(text, 998)) {
    return { type, parameters: [], body: { transferEncoding: '7bit', content } as const }
  }
  const plainBytes = /^(?:message|multipart)\//i.test(type)
  const given = rest.match(new RegExp(`${token}=(?:"[^"]*"|[^ ;]+)`, 'g')) ?? []
  // `filename` already gives the name. A boundary would not match these bytes.
  const parameters = given.filter((one) => !plainBytes && !/^(?:name|filename|boundary)[*=]/i.test(one))
  return { type: plainBytes ? octetStream : type, parameters, body: encodeBase64(content) }
}

const octetStream = 'application/octet-stream'

function typeField(type: string, parameters: readonly string[]): string {
  return fold('Content-Type', withSemicolons([type, ...parameters]))
}

function withSemicolons(words: readonly string[]): string[] {
  return words.map((word, index) => (index < words.length - 1 ? `${word};` : word))
}

function writePart(part: Part, fieldsBefore: string, chunks: Buffer[]): void {
  if ('parts' in part) {
    chunks.push(Buffer.from(`${fieldsBefore}${part.fields}\r\n`))
    for (const child of part.parts) {
      chunks.push(Buffer.from(`--${part.boundary}\r\n`))
      writePart(child, '', chunks)
      // RFC 2046 5.1.1: the line break before a boundary belongs to the boundary.
      chunks.push(lineBreak)
    }
    chunks.push(Buffer.from(`--${part.boundary}--\r\n`))
    return
  }
  const encoding = `Content-Transfer-Encoding: ${part.transferEncoding}\r\n`
  chunks.push(Buffer.from(`${fieldsBefore}${part.fields}${encoding}\r\n`), part.content)
  const isWhole = fieldsBefore !== ''
  // RFC 5321 4.1.1.4: a message ends with a line break.
  if (isWhole && part.content.length > 0 && part.content.at(-1) !== 10) chunks.push(lineBreak)
}

const lineBreak = Buffer.from('\r\n')
