// Prepares the header of a mail that a client wrote: reads its sender and our own fields, and adds what it lacks.
import { type Mailbox, readEmail } from '../address.ts'
import { parseAddressList } from '../read/address-list.ts'
import { maxFromLength } from '../read/author.ts'
import { oneLine } from '../read/charset.ts'
import { decodeEncodedWords } from '../read/encoded-word.ts'
import { type HeaderScan, maxFields, scanHeader } from '../read/header-scan.ts'
import { messageIds } from '../read/references.ts'
import { dateTime } from './date-time.ts'

export interface WrittenHeader {
  /** The header as it is stored and sent, each line with its line end, without the empty line. */
  bytes: Buffer
  from: Mailbox
  /** With angle brackets. */
  messageId: string
  /** The values of `X-Posthorn-Metadata-…`, by name in lower case. */
  metadata: Record<string, string>
  /** The value of `X-Posthorn-Purpose`. */
  purpose: string | null
  /** `optional`: the field TLS-Required asks to ignore the policies of the recipients' domains (RFC 8689). */
  tlsWish: 'required' | 'optional' | null
  /** Whether it has characters beyond ASCII. */
  isWide: boolean
}

interface Circumstances {
  at: Date
  /** Names the message if it has no usable Message-ID. Unique. */
  newId: string
  /** Whether a program without a person writes. */
  writer: 'agent' | 'other'
}

const metadataPrefix = 'x-posthorn-metadata-'
const purposeName = 'x-posthorn-purpose'
// RFC 5322 3.6: each occurs at most once. RFC 2045 3: so do the fields of MIME.
const singleNames = [
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'message-id', 'in-reply-to', 'references', 'subject', 'date'],
  ...['mime-version', 'content-type', 'content-transfer-encoding', purposeName],
]
/** RFC 5321 4.4: a message on its way has no Return-Path. The names of hidden recipients stay hidden. */
const removedNames = ['bcc', 'resent-bcc', 'return-path', purposeName]
const maxMetadata = 50
const maxMetadataLength = 500
/** 500 characters need at most 12 encoded ones each, plus the frames of the words. */
const maxEncodedLength = 10_000
const maxMessageIdBytes = 900

/** Returns the fault as a sentence if the header cannot be sent as it is. `header` ends each line with CRLF. */
export function readWrittenHeader(header: Buffer, given: Circumstances): WrittenHeader | { fault: string } {
  const fields = header
    .toString('latin1')
    .split(/\r\n(?![\t ])/)
    .filter((field) => field !== '')
  // Readers disagree on a line that is no field: for some of them the header ends there.
  // A name with much white space after it could hide from our reader, which looks for the colon in 76 bytes.
  const stray = fields.findIndex((field) => !/^[!-9;-~]+[\t ]{0,8}:/.test(field))
  if (stray >= 0) return { fault: `Line ${stray + 1} of the header is no header field.` }
  const scan = scanHeader(header)
  if (scan.isTruncated) return { fault: `The header has more than ${maxFields} fields.` }
  // Two readers would show different values.
  const repeated = singleNames.find((name) => scan.count(name) > 1)
  if (repeated) return { fault: `The header has more than one ${repeated} field.` }
  const from = readSender(scan)
  if ('fault' in from) return from
  const own = readOwnFields(fields, scan)
  if ('fault' in own) return own
  // RFC 8689 3: the only value is No. Two fields are ambiguous, so the policies hold.
  const isOptional = scan.count('tls-required') === 1 && /^no$/i.test(scan.first('tls-required')!.trim())
  const tlsWish = isOptional ? 'optional' : null
  return { ...own, ...complete(fields, scan, from, given), from, tlsWish }
}

/** RFC 5322 3.6.2: with one author, the sender is the author. Another Sender may only be of the same domain. */
function readSender(scan: HeaderScan): Mailbox | { fault: string } {
  const author = onlyMailbox(scan.first('from') ?? '')
  const domain = author && readEmail(author.email)?.domain
  if (!author || !domain) return { fault: 'The header must have a From field with one address.' }
  const sender = scan.first('sender')
  if (sender && readEmail(onlyMailbox(sender)?.email ?? '')?.domain !== domain)
    return { fault: 'The Sender field must have one address, of the domain of From.' }
  return author
}

function onlyMailbox(value: string): Mailbox | null {
  // Security: an address after the end that we read would be seen by others only.
  const found = value.length <= maxFromLength ? parseAddressList(value, 2) : []
  return found.length === 1 ? found[0]! : null
}

function readOwnFields(
  fields: readonly string[],
  scan: HeaderScan,
): Pick<WrittenHeader, 'metadata' | 'purpose'> | { fault: string } {
  const names = fields.map(nameOf).filter((name) => name.startsWith(metadataPrefix))
  if (names.length > maxMetadata) return { fault: `The header has more than ${maxMetadata} metadata fields.` }
  const metadata: Record<string, string> = Object.create(null)
  for (const name of names) {
    const key = name.slice(metadataPrefix.length)
    const value = readText(scan, name)
    if (!/^[a-z0-9_.-]{1,40}$/.test(key) || scan.count(name) > 1 || value.length > maxMetadataLength)
      return {
        fault: `Each ${metadataPrefix} field must end in a name of 1 to 40 characters a-z, 0-9, _ . - that occurs once, and have up to ${maxMetadataLength} characters.`,
      }
    metadata[key] = value
  }
  const purpose = scan.count(purposeName) > 0 ? readText(scan, purposeName).toLowerCase() : null
  if (purpose !== null && purpose !== 'transactional' && purpose !== 'marketing')
    return { fault: `The ${purposeName} field must be transactional or marketing.` }
  return { metadata: { ...metadata }, purpose }
}

function readText(scan: HeaderScan, name: string): string {
  const value = scan.first(name) ?? ''
  // A value of 256 KiB takes 200 ms to decode. One that is too long in its encoded form stays so.
  return value.length > maxEncodedLength ? value : oneLine(decodeEncodedWords(value)).trim()
}

function complete(
  fields: readonly string[],
  scan: HeaderScan,
  from: Mailbox,
  { at, newId, writer }: Circumstances,
): Pick<WrittenHeader, 'bytes' | 'messageId' | 'isWide'> {
  const ownId = messageIds(oneLine(scan.first('message-id') ?? ''), 1)[0]
  const isKept =
    ownId !== undefined && ownId.length <= maxMessageIdBytes && /^<[\x21-\x3b\x3d\x3f-\x7e]+>$/.test(ownId)
  const messageId = isKept ? ownId : `<${newId}@${readEmail(from.email)!.domain}>`
  const kept = fields.filter((field) => {
    const name = nameOf(field)
    return (
      !removedNames.includes(name) && !name.startsWith(metadataPrefix) && (isKept || name !== 'message-id')
    )
  })
  // RFC 6409 8.2: a server may add a missing Date. RFC 6409 8.3: also a missing or invalid Message-ID.
  if (scan.count('date') === 0) kept.push(`Date: ${dateTime(at)}`)
  if (!isKept) kept.push(`Message-ID: ${messageId}`)
  // RFC 3834 5: without this field, two agents could answer each other for ever.
  if (writer === 'agent' && scan.count('auto-submitted') === 0) kept.push('Auto-Submitted: auto-generated')
  const text = kept.map((field) => `${field}\r\n`).join('')
  return { bytes: Buffer.from(text, 'latin1'), messageId, isWide: /[^\x00-\x7f]/.test(text) }
}

function nameOf(field: string): string {
  return field.slice(0, field.indexOf(':')).trimEnd().toLowerCase()
}
