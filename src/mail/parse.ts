// What a received mail says: its fields, its text and its attachments, read from raw bytes under reading.
import { createHash } from 'node:crypto'
import type { Mailbox } from './address.ts'
import { parseAddressList } from './address-list.ts'
import { decodeText, wellFormed } from './charset.ts'
import { parseDateField } from './date-field.ts'
import { decodeEncodedWords } from './encoded-word.ts'
import { bufferOver, type HeaderScan, scanHeader } from './header-scan.ts'
import { htmlToText } from './html-text.ts'
import { type MimePart, splitMime } from './mime-parts.ts'
import { extractNewText } from './quote.ts'
import { messageIds } from './references.ts'
import { selectBodies } from './select-bodies.ts'
import { decodeTransferEncoding, type TransferEncoding, transferEncoding } from './transfer-encoding.ts'

const mostAttachments = 999
const mostReferences = 100
const mostMailboxes = 1000
const longestSubject = 10_000
const longestFilename = 255
const longestTextBytes = 4 << 20
const longestFallbackBytes = 256 * 1024

export interface ParsedAttachment {
  /** As the sender named it, without controls and direction marks; made from number and type where it has no name. */
  filename: string
  contentType: string
  sizeBytes: number
  disposition: 'attachment' | 'inline'
  /** Without angle brackets. */
  contentId: string | null
  /** Of the decoded bytes, in lower-case hex. */
  sha256: string
}

/** Every string is well-formed Unicode without NUL. A field that may stand once counts where it stands first. */
export interface ParsedMail {
  /** With angle brackets, as are `inReplyTo` and `references`. */
  messageId: string | null
  inReplyTo: string | null
  /** At most 100, the last ones. */
  references: string[]
  /** The first mailbox of the first From field; null where that names no address. */
  from: Mailbox | null
  to: Mailbox[]
  cc: Mailbox[]
  replyTo: Mailbox | null
  subject: string
  date: Date | null
  /** Lines end with LF. Made from the HTML where there is no other text. */
  text: string
  html: string | null
  extractedText: string
  /** At most 999; attachment n of the API is the one at n - 1. */
  attachments: ParsedAttachment[]
  /** What of the message is not shown, or shown otherwise than it was meant, and why; null for nearly all mail. */
  note: string | null
}

/** Reads the message. Bounded in time and memory by its size, whatever it holds; it fails only by a fault of ours. */
export function parseMail(raw: Uint8Array): ParsedMail {
  const { root, isTruncated } = splitMime(raw)
  const bodies = selectBodies(root)
  const reading = new Reading()
  if (isTruncated) reading.note('too many parts, levels or header fields')
  if (bodies.attachments.length > mostAttachments) reading.note(`more than ${mostAttachments} attachments`)
  const text = readText(bodies.text, reading)
  return {
    ...readFields(root.header, reading),
    text,
    html: readHtml(bodies.html, reading),
    extractedText: extractNewText(text),
    attachments: bodies.attachments.slice(0, mostAttachments).map(describeAttachment),
    note: reading.toNote(),
  }
}

export interface AttachmentContent {
  bytes: Buffer
  /** In lower-case hex. */
  sha256: string
  /** Where it stands in the message, still encoded. */
  place: { start: number; length: number; encoding: TransferEncoding }
}

/** The contents of all attachments, in the order of `ParsedMail.attachments`; together no larger than the message. */
export function attachmentContents(raw: Uint8Array): AttachmentContent[] {
  const parts = selectBodies(splitMime(raw).root).attachments.slice(0, mostAttachments)
  return parts.map((part) => {
    const bytes = decodeBody(part)
    const field = part.header.first('content-transfer-encoding') ?? ''
    const encoding = bytes === part.body ? 'none' : transferEncoding(field)
    const start = part.body.length === 0 ? 0 : part.body.byteOffset - raw.byteOffset
    return { bytes, sha256: sha256(bytes), place: { start, length: part.body.length, encoding } }
  })
}

/** The message as plain text, for when reading it failed: `note` says why. Looks at 256 KiB at most. */
export function plainTextView(raw: Uint8Array, note: string): ParsedMail {
  const bytes = bufferOver(raw)
  const { headerEnd } = scanHeader(bytes)
  const body = bytes.subarray(headerEnd, headerEnd + longestFallbackBytes)
  const text = wellFormed(decodeText(body, null).replaceAll('\r\n', '\n'))
  const nothing = { messageId: null, inReplyTo: null, from: null, replyTo: null, date: null, html: null }
  return {
    ...nothing,
    references: [],
    to: [],
    cc: [],
    subject: '',
    text,
    extractedText: text,
    attachments: [],
    note,
  }
}

/** What reading one message has found out so far: its texts, and the limits that it met. */
class Reading {
  readonly #notes: string[] = []
  readonly #texts = new Map<MimePart, string>()
  #bytesLeft = longestTextBytes

  note(limit: string): void {
    if (!this.#notes.includes(limit)) this.#notes.push(limit)
  }

  /** The text of a part, cut where the message has more text than is shown. */
  textOf(part: MimePart): string {
    const known = this.#texts.get(part)
    if (known !== undefined) return known
    // No encoding takes more than three bytes for one.
    const bytes = decodeBody({ ...part, body: part.body.subarray(0, 3 * this.#bytesLeft) })
    const shown = bytes.subarray(0, this.#bytesLeft)
    if (shown.length < bytes.length || part.body.length > 3 * this.#bytesLeft)
      this.note('a text of more than 4 MiB')
    this.#bytesLeft -= shown.length
    const text = decodeText(shown, part.typeParameters.get('charset')?.trim() ?? null)
    const clean = wellFormed(text.replaceAll('\r\n', '\n'))
    this.#texts.set(part, clean)
    return clean
  }

  toNote(): string | null {
    return this.#notes.length === 0 ? null : `beyond the limits of this service: ${this.#notes.join('; ')}`
  }
}

function readFields(header: HeaderScan, reading: Reading) {
  return {
    messageId: readMessageId(header.first('message-id')),
    inReplyTo: messageIds(header.first('in-reply-to') ?? '', mostReferences)[0] ?? null,
    references: messageIds(header.first('references') ?? '', mostReferences).map(wellFormed),
    from: readMailboxes(header, 'from', reading)[0] ?? null,
    to: readMailboxes(header, 'to', reading),
    cc: readMailboxes(header, 'cc', reading),
    replyTo: readMailboxes(header, 'reply-to', reading)[0] ?? null,
    subject: wellFormed(decodeEncodedWords(header.first('subject') ?? '').slice(0, longestSubject)),
    date: parseDateField(header.first('date') ?? ''),
  }
}

function readMessageId(field: string | null): string | null {
  if (field === null) return null
  const id = messageIds(field, 1)[0]
  if (id !== undefined) return wellFormed(id)
  // QUIRK: some programs leave out the angle brackets (header-fields-stalwart, id); answers to them have them.
  return /^[^\s<>]{1,996}$/.test(field) ? wellFormed(`<${field}>`) : null
}

function readMailboxes(header: HeaderScan, name: string, reading: Reading): Mailbox[] {
  const mailboxes = parseAddressList(header.first(name) ?? '', mostMailboxes + 1)
  if (mailboxes.length > mostMailboxes) reading.note(`more than ${mostMailboxes} addresses in one field`)
  return mailboxes.slice(0, mostMailboxes).map((mailbox) => {
    const email = wellFormed(mailbox.email)
    return mailbox.name === undefined ? { email } : { email, name: wellFormed(mailbox.name) }
  })
}

function readText(parts: MimePart[], reading: Reading): string {
  return parts
    .map((part) =>
      part.contentType === 'text/html' ? htmlToText(reading.textOf(part)) : reading.textOf(part),
    )
    .join('\n')
}

/** The HTML parts one after the other, with plain text between them marked up; null where there is no HTML. */
function readHtml(parts: MimePart[], reading: Reading): string | null {
  if (!parts.some((part) => part.contentType === 'text/html')) return null
  return parts
    .map((part) => (part.contentType === 'text/html' ? reading.textOf(part) : markUp(reading.textOf(part))))
    .join('\n')
}

function markUp(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return `<pre>${escaped}</pre>`
}

function decodeBody(part: MimePart): Buffer {
  const encoding = part.header.first('content-transfer-encoding') ?? ''
  // RFC 2045 6.4: a multipart has no transfer encoding but 7bit, 8bit or binary.
  return part.contentType.startsWith('multipart/') ? part.body : decodeTransferEncoding(part.body, encoding)
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function describeAttachment(part: MimePart, index: number): ParsedAttachment {
  const bytes = decodeBody(part)
  const contentId = part.header.first('content-id')?.replace(/^<|>$/g, '') || null
  const isInline =
    part.disposition.value === 'inline' || (part.disposition.value === '' && contentId !== null)
  return {
    filename: filenameOf(part, index + 1),
    contentType: wellFormed(part.contentType.slice(0, longestFilename)),
    sizeBytes: bytes.length,
    disposition: isInline ? 'inline' : 'attachment',
    contentId: contentId === null ? null : wellFormed(contentId.slice(0, longestFilename)),
    sha256: sha256(bytes),
  }
}

function filenameOf(part: MimePart, number: number): string {
  const given = part.disposition.parameters.get('filename') ?? part.typeParameters.get('name') ?? ''
  // Direction marks make `exe.pdf` out of `fdp.exe`: they are no part of a name, and controls are not either.
  const shown = wellFormed(given)
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, '')
    .trim()
  if (shown !== '') return shown.slice(0, longestFilename).toWellFormed()
  return `attachment-${number}.${extensionOf(part.contentType)}`
}

function extensionOf(contentType: string): string {
  const [type, subtype] = contentType.split('/')
  if (contentType === 'message/rfc822') return 'eml'
  if (/^[a-z0-9]{2,4}$/.test(subtype ?? '')) return subtype!
  return type === 'text' ? 'txt' : 'bin'
}
