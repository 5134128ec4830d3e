// Parses a received mail from raw bytes into its fields, texts and attachments.
import { createHash } from 'node:crypto'
import type { Mailbox } from '../address.ts'
import { parseAddressList } from './address-list.ts'
import { readAuthor } from './author.ts'
import { isAutomatic } from './automatic.ts'
import type { Bytes } from './bytes.ts'
import { decodeText, oneLine, startInBytes, startOf, wellFormed } from './charset.ts'
import { type ContentFacts, differ } from './content-facts.ts'
import { parseDateField } from './date-field.ts'
import { decodeEncodedWords } from './encoded-word.ts'
import { bufferOver, type HeaderScan, scanHeader } from './header-scan.ts'
import { readHtmlText } from './html-text.ts'
import { withoutInvisible } from './invisible.ts'
import { type MimePart, splitMime } from './mime-parts.ts'
import { contentOf, encodingOf, startOfContent } from './part-content.ts'
import { extractNewText } from './quote.ts'
import { messageIds } from './references.ts'
import { type SelectedBodies, selectBodies } from './select-bodies.ts'
import type { TransferEncoding } from './transfer-encoding.ts'

const maxAttachments = 999
const maxReferences = 100
const maxMailboxes = 1000
const maxSubject = 10_000
const maxFilename = 255
const maxTextBytes = 4 << 20
const maxFallbackBytes = 256 * 1024

export interface ParsedAttachment {
  /** The sender's filename without controls and direction marks. Made from number and type if there is none. */
  filename: string
  contentType: string
  sizeBytes: number
  disposition: 'attachment' | 'inline'
  /** Without angle brackets. */
  contentId: string | null
  /** Lower-case hex, over the decoded bytes. */
  sha256: string
  /** Position in the message, still encoded. */
  span: { start: number; length: number; encoding: TransferEncoding }
}

/**
 * Every string is well-formed Unicode without NUL. Strings from header fields are one line without control characters.
 * If a field that may occur once is repeated, its first occurrence counts.
 */
export interface ParsedMail {
  /** With angle brackets, as are `inReplyTo` and `references`. */
  messageId: string | null
  inReplyTo: string | null
  /** Up to 100, the last ones. */
  references: string[]
  /** See `readAuthor`. */
  from: Mailbox | null
  to: Mailbox[]
  cc: Mailbox[]
  replyTo: Mailbox | null
  subject: string
  date: Date | null
  /** The header says that a program wrote the mail. */
  isAutomatic: boolean
  /**
   * Contains only text that a person sees, from the HTML if there is no other text. Lines end with LF. Up to 4 MiB in
   * UTF-8, as is `html`.
   */
  text: string
  html: string | null
  extractedText: string
  /** Up to 999. Attachment n of the API has index n - 1. */
  attachments: ParsedAttachment[]
  /** Null if the message could not be read. */
  content: ContentFacts | null
  /** Which parts of the message are not shown, or not as intended, and why. Null for nearly all mail. */
  note: string | null
}

/** Reads the message. Its size bounds time and memory, whatever it contains. Throws only because of a bug of ours. */
export function parseMail(raw: Uint8Array | Bytes): ParsedMail {
  const { root, isTruncated } = splitMime(raw)
  const bodies = selectBodies(root)
  const reading = new Reading()
  if (isTruncated) reading.note('too many parts, levels or header fields')
  if (bodies.attachments.length > maxAttachments) reading.note(`more than ${maxAttachments} attachments`)
  const fields = readFields(root.header, reading)
  const text = readText(bodies.text, reading)
  for (const part of bodies.html) if (isHtml(part)) reading.visibleTextOf(part)
  return {
    ...fields,
    text,
    html: readHtml(bodies.html, reading),
    extractedText: extractNewText(text, fields.subject),
    attachments: bodies.attachments.slice(0, maxAttachments).map(describeAttachment),
    content: { ...reading.counts, textDiffersFromHtml: saysOther(bodies, reading) },
    note: reading.toNote(),
  }
}

/** The author and the subject of a mail, read from its first bytes. */
export function readHead(start: Uint8Array): { from: Mailbox | null; subject: string } {
  const header = scanHeader(bufferOver(start))
  return { from: readAuthor(header), subject: subjectOf(header) }
}

function subjectOf(header: HeaderScan): string {
  return startOf(oneLine(decodeEncodedWords(header.first('subject') ?? '')), maxSubject)
}

/** The message as plain text, for mail that could not be read. `note` says why. Reads up to 256 KiB of the body. */
export function plainTextView(raw: Uint8Array, note: string): ParsedMail {
  const bytes = bufferOver(raw)
  const header = scanHeader(bytes)
  const body = bytes.subarray(header.headerEnd, header.headerEnd + maxFallbackBytes)
  const text = withoutInvisible(wellFormed(decodeText(body, null).replaceAll('\r\n', '\n')))
  const nothing = { messageId: null, inReplyTo: null, from: null, replyTo: null, date: null, html: null }
  return {
    ...nothing,
    references: [],
    to: [],
    cc: [],
    subject: '',
    isAutomatic: isAutomatic(header),
    text,
    extractedText: text,
    attachments: [],
    content: null,
    note,
  }
}

const tooMuchText = 'a text of more than 4 MiB'

/** State of reading one message: its texts, and the limits that it exceeded. */
class Reading {
  readonly #notes: string[] = []
  readonly #texts = new Map<MimePart, string>()
  readonly #visible = new Map<MimePart, string>()
  readonly counts = { hiddenText: 0, invisibleCharacters: 0, bidiOverrides: 0 }
  #bytesLeft = maxTextBytes

  note(limit: string): void {
    if (!this.#notes.includes(limit)) this.#notes.push(limit)
  }

  /** The text of a part, cut if the message has more text than is shown. */
  textOf(part: MimePart): string {
    const known = this.#texts.get(part)
    if (known !== undefined) return known
    const { bytes, isMore } = startOfContent(part, this.#bytesLeft)
    if (isMore) this.note(tooMuchText)
    const text = decodeText(bytes, part.typeParameters.get('charset')?.trim() ?? null)
    const clean = this.cut(wellFormed(text.replaceAll('\r\n', '\n')), this.#bytesLeft)
    this.#bytesLeft -= Math.max(bytes.length, Buffer.byteLength(clean))
    this.#texts.set(part, clean)
    return clean
  }

  /** The text of a part that a person sees. */
  visibleTextOf(part: MimePart): string {
    const known = this.#visible.get(part)
    if (known !== undefined) return known
    const given = this.textOf(part)
    const text = isHtml(part) ? this.#readHtml(given) : withoutInvisible(given, this.counts)
    this.#visible.set(part, text)
    return text
  }

  #readHtml(html: string): string {
    const { text, isBeyond, ...counts } = readHtmlText(html)
    if (isBeyond) this.note('too much style to tell what it hides')
    for (const name of ['hiddenText', 'invisibleCharacters', 'bidiOverrides'] as const)
      this.counts[name] += counts[name]
    return text
  }

  /** The text cut to `maxBytes`, with a note if there was more. */
  cut(text: string, maxBytes: number): string {
    const cut = startInBytes(text, maxBytes)
    if (cut !== text) this.note(tooMuchText)
    return cut
  }

  toNote(): string | null {
    return this.#notes.length === 0 ? null : `beyond the limits of this service: ${this.#notes.join('; ')}`
  }
}

function readFields(header: HeaderScan, reading: Reading) {
  return {
    messageId: readMessageId(header.first('message-id')),
    inReplyTo: idsIn(header, 'in-reply-to')[0] ?? null,
    references: idsIn(header, 'references'),
    from: readAuthor(header),
    to: readMailboxes(header, 'to', reading),
    cc: readMailboxes(header, 'cc', reading),
    replyTo: readMailboxes(header, 'reply-to', reading)[0] ?? null,
    subject: subjectOf(header),
    date: parseDateField(header.first('date') ?? ''),
    isAutomatic: isAutomatic(header),
  }
}

function idsIn(header: HeaderScan, name: string): string[] {
  return messageIds(oneLine(header.first(name) ?? ''), maxReferences)
}

function readMessageId(field: string | null): string | null {
  if (field === null) return null
  const line = oneLine(field)
  const id = messageIds(line, 1)[0]
  if (id !== undefined) return id
  // QUIRK: some programs omit the angle brackets (header-fields-stalwart, id). Replies to their mail add them.
  return /^[^\s<>]{1,996}$/.test(line) ? `<${line}>` : null
}

function readMailboxes(header: HeaderScan, name: string, reading: Reading): Mailbox[] {
  const mailboxes = parseAddressList(header.first(name) ?? '', maxMailboxes + 1)
  if (mailboxes.length > maxMailboxes) reading.note(`more than ${maxMailboxes} addresses in one field`)
  return mailboxes.slice(0, maxMailboxes)
}

function readText(parts: MimePart[], reading: Reading): string {
  return reading.cut(parts.map((part) => reading.visibleTextOf(part)).join('\n'), maxTextBytes)
}

function saysOther({ text, html }: SelectedBodies, reading: Reading): boolean {
  if (!html.some(isHtml) || text.some(isHtml)) return false
  const visible = (parts: MimePart[]) => parts.map((part) => reading.visibleTextOf(part)).join('\n')
  return text.length > 0 && differ(visible(text), visible(html))
}

const isHtml = ({ contentType }: MimePart) => contentType === 'text/html'

/** The HTML parts in order, with plain text between them marked up. Null if there is no HTML. */
function readHtml(parts: MimePart[], reading: Reading): string | null {
  if (!parts.some((part) => part.contentType === 'text/html')) return null
  const texts = parts.map((part) =>
    part.contentType === 'text/html' ? reading.textOf(part) : markUp(reading.textOf(part)),
  )
  return reading.cut(texts.join('\n'), maxTextBytes)
}

function markUp(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return `<pre>${escaped}</pre>`
}

function describeAttachment(part: MimePart, index: number): ParsedAttachment {
  const encoding = encodingOf(part)
  const hash = createHash('sha256')
  let sizeBytes = 0
  for (const piece of contentOf(part.body, encoding)) {
    hash.update(piece)
    sizeBytes += piece.length
  }
  const { start, length } = part.body
  const contentId = part.header.first('content-id')?.replace(/^<|>$/g, '') || null
  const isInline =
    part.disposition.value === 'inline' || (part.disposition.value === '' && contentId !== null)
  return {
    filename: filenameOf(part, index + 1),
    contentType: startOf(oneLine(part.contentType), maxFilename),
    sizeBytes,
    disposition: isInline ? 'inline' : 'attachment',
    contentId: contentId === null ? null : startOf(oneLine(contentId), maxFilename),
    sha256: hash.digest('hex'),
    span: { start: length === 0 ? 0 : start, length, encoding },
  }
}

function filenameOf(part: MimePart, number: number): string {
  const given = part.disposition.parameters.get('filename') ?? part.typeParameters.get('name') ?? ''
  // Direction marks can show `fdp.exe` as `exe.pdf`, so they are removed.
  const visible = oneLine(given)
    .replace(/\p{Bidi_Control}/gu, '')
    .trim()
  if (visible !== '') return startOf(visible, maxFilename)
  return `attachment-${number}.${extensionOf(part.contentType)}`
}

/** Extensions of types that programs recognize by the file name and whose subtype is not the extension. */
const extensions: Readonly<Record<string, string>> = {
  'message/rfc822': 'eml',
  'text/calendar': 'ics',
  'text/vcard': 'vcf',
  'text/x-vcard': 'vcf',
  'application/pkcs7-mime': 'p7m',
  'application/pkcs7-signature': 'p7s',
}

function extensionOf(contentType: string): string {
  const known = extensions[contentType]
  if (known !== undefined) return known
  const [type, subtype] = contentType.split('/')
  if (/^[a-z0-9]{2,4}$/.test(subtype ?? '')) return subtype!
  return type === 'text' ? 'txt' : 'bin'
}
