// Reads reports about sent mail: delivery status notifications, feedback reports, and bounces in words only.
import { parseAddressList } from '../read/address-list.ts'
import type { Bytes } from '../read/bytes.ts'
import { wellFormed } from '../read/charset.ts'
import { withoutComments } from '../read/comments.ts'
import { parseDateField } from '../read/date-field.ts'
import { decodeEncodedWords } from '../read/encoded-word.ts'
import { type HeaderScan, scanHeader } from '../read/header-scan.ts'
import { type MimePart, splitMime } from '../read/mime-parts.ts'
import { parseMail } from '../read/parse.ts'
import { startOfContent } from '../read/part-content.ts'
import { enhancedIn, isOpen, quotedReply, type RecipientReport, shortLine } from './recipient-report.ts'
import { completeByWords, readWordedBounce } from './worded-bounce.ts'

export interface DeliveryReport {
  kind: 'delivery'
  /** Up to 1,000. */
  recipients: RecipientReport[]
}

export interface FeedbackReport {
  kind: 'feedback'
  /** In lower case, as the report states it. */
  feedbackType: string
  /** Each address that the report names as a recipient of the reported mail. */
  addresses: string[]
  /** Up to 20 addresses in the form of our return paths, from the report and the header of the reported mail. */
  returnPaths: string[]
  userAgent: string | null
  reportedBy: string | null
  arrivedAt: Date | null
}

export type Report = DeliveryReport | FeedbackReport

const maxRecipients = 1000
const maxGroups = 2 * maxRecipients
const maxAddresses = 20
const maxReturnPaths = 20
const maxPartBytes = 1 << 20
const maxOriginalBytes = 256 * 1024
const maxField = 1000
const traceField = /^(?:x-hmxmroriginalrecipient|return-path|received|delivered-to|authentication-results):/im
const maxName = 255

/** The kind of address that received the report. */
export type ReportAddress = 'return_path' | 'feedback'

/** The report in the mail, or null if there is none. Bounded by the mail's size. Throws only because of a bug of ours. */
export function readReport(raw: Uint8Array | Bytes, sentTo: ReportAddress = 'return_path'): Report | null {
  const { root } = splitMime(raw)
  const parts = leavesOf(root)
  const feedback = parts.find(({ contentType }) => contentType === 'message/feedback-report')
  if (feedback) return readFeedback(root.header, feedback, parts)
  // RFC 6533 4: the same form as RFC 3464, with addresses in UTF-8.
  const status = parts.filter(({ contentType }) => /^message\/(?:global-)?delivery-status$/.test(contentType))
  const recipients = status.flatMap(readStatus).slice(0, maxRecipients)
  if (recipients.length > 0) {
    const isComplete = !recipients.some(({ enhanced }) => isOpen(enhanced))
    return {
      kind: 'delivery',
      recipients: isComplete ? recipients : completeByWords(recipients, parseMail(raw)),
    }
  }
  // An automatic answer to a return path may attach our mail. That is a complaint only at the address for complaints.
  if (sentTo === 'feedback') return readForwarded(root.header, parts)
  const worded = readWordedBounce(root.header, parseMail(raw))
  return worded && { kind: 'delivery', recipients: worded }
}

function leavesOf(part: MimePart): MimePart[] {
  return part.parts.length === 0 ? [part] : part.parts.flatMap(leavesOf)
}

// RFC 3464 2.1: groups of fields with empty lines between. The first is about the message, the others about recipients.
function readStatus(part: MimePart): RecipientReport[] {
  const { bytes } = startOfContent(part, maxPartBytes)
  const recipients: RecipientReport[] = []
  let at = 0
  for (let group = 0; group < maxGroups && at < bytes.length; group++) {
    const fields = scanHeader(bytes, at)
    at = fields.headerEnd
    const recipient = readRecipient(fields)
    if (recipient) recipients.push(recipient)
  }
  return recipients
}

function readRecipient(fields: HeaderScan): RecipientReport | null {
  const named = ['original-recipient', 'final-recipient', 'x-actual-recipient']
  const addresses = named.flatMap((name) => addressIn(fields.first(name)))
  if (addresses.length === 0 && fields.first('action') === null) return null
  const status = enhancedIn(fields.first('status') ?? '')
  const diagnostic = shortLine((fields.first('diagnostic-code') ?? '').replace(/^[\w.-]{1,40}\s?;\s?/, ''))
  const action = actionOf(fields.first('action') ?? '', status)
  if (action === null) return null
  const quoted = quotedReply(diagnostic)
  // QUIRK: gateways write 5.0.0 or 5.1.1 for everything. The reply that they quote states the cause.
  const enhanced = quoted.enhanced ?? status
  return {
    addresses: [...new Set(addresses)],
    action,
    enhanced,
    code: quoted.code,
    stage: quoted.stage,
    text: diagnostic || status || '',
  }
}

// RFC 3464 2.3.3: five actions. Relayed and expanded say only that nothing went wrong here.
function actionOf(field: string, status: string | null): RecipientReport['action'] | null {
  const word = /^[a-z]{1,20}/i.exec(field)?.[0].toLowerCase() ?? ''
  if (word === 'failed' || word === 'failure') return 'failed'
  if (word === 'delayed') return 'delayed'
  if (['delivered', 'relayed', 'expanded'].includes(word)) return 'delivered'
  if (word !== '' || status === null) return null
  return status.startsWith('5') ? 'failed' : status.startsWith('4') ? 'delayed' : 'delivered'
}

/** The address of a field such as `rfc822; <user@example.com>`, as a list with one entry or none. */
function addressIn(field: string | null): string[] {
  if (field === null) return []
  const text = withoutComments(field.slice(0, maxField))
  const type = text.slice(0, text.indexOf(';') + 1).trim()
  const address = text
    .slice(text.indexOf(';') + 1)
    .trim()
    .replace(/^<|>$/g, '')
  return address === '' ? [] : [wellFormed(/^utf-8 ?;$/i.test(type) ? withoutEscapes(address) : address)]
}

// RFC 6533 3: a report in ASCII writes other characters as their code points, `\x{E9}`.
function withoutEscapes(address: string): string {
  return address.replace(/\\x\{([0-9a-f]{2,6})\}/gi, (written, hex) => {
    const point = Number.parseInt(hex, 16)
    return point <= 0x10ffff ? String.fromCodePoint(point) : written
  })
}

// RFC 5965 3: a part with the fields of the report, followed by the message or its header.
function readFeedback(header: HeaderScan, part: MimePart, parts: MimePart[]): FeedbackReport {
  const { bytes } = startOfContent(part, maxPartBytes)
  const fields = scanHeader(
    bytes,
    Math.max(
      0,
      bytes.findIndex((byte) => byte !== 0x0d && byte !== 0x0a),
    ),
  )
  const original = originalHeader(parts)
  const named = ['original-rcpt-to', 'removal-recipient'].flatMap((name) => fields.values(name))
  const arrived = fields.first('arrival-date') ?? fields.first('received-date') ?? ''
  return {
    kind: 'feedback',
    feedbackType: shortLine(fields.first('feedback-type') ?? '').toLowerCase(),
    addresses: addressesIn([...named, ...visibleRecipientsIn(original)]),
    returnPaths: returnPathsIn([bytes.toString('latin1'), original.toString('latin1')]),
    userAgent: nameIn(fields.first('user-agent')),
    reportedBy: reporterOf(fields, header),
    arrivedAt: parseDateField(arrived),
  }
}

/**
 * QUIRK: Microsoft's JMRP writes no RFC 5965 report. It forwards the message with `X-HmXmrOriginalRecipient` in its
 * header, and others forward it as text. Such a mail counts as abuse if it has our return path, the only proof.
 */
function readForwarded(header: HeaderScan, parts: MimePart[]): FeedbackReport | null {
  const original = originalHeader(parts)
  const returnPaths = returnPathsIn([original.toString('latin1')])
  if (returnPaths.length === 0) return null
  const addresses = addressesIn(visibleRecipientsIn(original))
  const reportedBy = domainOfSender(header)
  return {
    kind: 'feedback',
    feedbackType: 'abuse',
    addresses,
    returnPaths,
    userAgent: null,
    reportedBy,
    arrivedAt: null,
  }
}

/** The header of the reported message: attached, or else in a text from its first trace field on. */
function originalHeader(parts: MimePart[]): Buffer {
  const attached = parts.find(isOriginal)
  const part = attached ?? parts.find(({ contentType }) => contentType === 'text/plain')
  if (!part) return Buffer.alloc(0)
  const { bytes } = startOfContent(part, maxOriginalBytes)
  const start = attached ? 0 : bytes.toString('latin1').search(traceField)
  return start < 0 ? Buffer.alloc(0) : bytes.subarray(start, scanHeader(bytes, start).headerEnd)
}

function visibleRecipientsIn(original: Buffer): string[] {
  const header = scanHeader(original)
  return ['x-hmxmroriginalrecipient', 'to', 'cc'].flatMap((name) => header.values(name))
}

function isOriginal({ contentType }: MimePart): boolean {
  return /^(?:message\/(?:rfc822|global|rfc822-headers|global-headers)|text\/rfc822-headers)$/.test(
    contentType,
  )
}

function addressesIn(fields: string[]): string[] {
  const mailboxes = fields.flatMap((field) => parseAddressList(field, maxAddresses))
  const emails = mailboxes.map(({ email }) => wellFormed(email))
  return [...new Set(emails)].slice(0, maxAddresses)
}

function returnPathsIn(texts: string[]): string[] {
  const found = new Set<string>()
  for (const text of texts) {
    for (const [address] of text.matchAll(/\bbounce-[a-z2-7]{48}@[a-z0-9.-]{1,253}/gi)) {
      if (found.size >= maxReturnPaths) return [...found]
      found.add(address.toLowerCase().replace(/[.-]+$/, ''))
    }
  }
  return [...found]
}

function nameIn(field: string | null): string | null {
  return shortLine(decodeEncodedWords(field ?? ''), maxName) || null
}

/** The reporting host, or the domain that the report comes from. */
function reporterOf(fields: HeaderScan, header: HeaderScan): string | null {
  const host = addressIn(fields.first('reporting-mta'))[0]
  if (host !== undefined) return nameIn(host)
  return domainOfSender(header)
}

function domainOfSender(header: HeaderScan): string | null {
  const from = parseAddressList(header.first('from') ?? '', 1)[0]?.email ?? ''
  return nameIn(from.slice(from.lastIndexOf('@') + 1))
}
