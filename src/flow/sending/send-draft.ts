// The draft of a send before its content is made: sender, recipients and thread.
import type { InboxId, ThreadId } from '../../base/ids.ts'
import { type Mailbox, readEmail } from '../../mail/address.ts'
import type { AttachmentEntry, MessageRow } from '../../store/mailbox/messages.ts'
import type { RawRow } from '../../store/mailbox/raws.ts'
import type { SendOperation } from '../../store/sending/submissions.ts'
import type { TlsWish } from '../route-policy.ts'

export interface AttachmentBody {
  filename: string
  contentType: string
  content: Buffer
  contentId?: string
}

/** A program's request for a new message. */
export interface MessageBody {
  to: Mailbox[]
  cc?: Mailbox[]
  bcc?: Mailbox[]
  subject: string
  text?: string
  html?: string
  replyTo?: Mailbox
  metadata?: MessageRow['metadata']
  purpose?: string
  attachments?: AttachmentBody[]
}

/** A program's request for a message through a domain, without an inbox. */
export interface DomainMessageBody extends MessageBody {
  from: Mailbox
  /** Additional header fields. */
  headers?: Record<string, string>
}

/** A program's request for a reply. */
export interface ReplyBody {
  targetMessageId: string
  text?: string
  html?: string
  replyAll?: boolean
  attachments?: AttachmentBody[]
  metadata?: MessageRow['metadata']
  purpose?: string
}

/** A message that a client wrote: sent as `raw`, and shown with the values parsed from it. */
export interface WrittenBody {
  raw: RawRow
  messageId: string
  text: string
  html?: string
  entries: AttachmentEntry[]
  metadata?: MessageRow['metadata']
  purpose?: string
}

/** The request of a program that leaves the composition to us. */
export type ComposedBody = MessageBody | ReplyBody | DomainMessageBody
export type SendBody = ComposedBody | WrittenBody

export interface Sender {
  /** The inbox. Null for mail through a domain. */
  id: InboxId | null
  mailbox: Mailbox
  domain: string
  /** Null for the managed domain, and for a domain that is not proved. */
  domainId: string | null
}

export interface Recipient {
  email: string
  /** The address key. */
  key: string
  domain: string
}

export interface Addressed {
  to: Mailbox[]
  cc: Mailbox[]
  bcc: Mailbox[]
  /** All recipients: to, cc, then bcc. */
  recipients: Recipient[]
}

/** The common form of a new message, a reply and a send through a domain. */
export interface SendDraft extends Addressed {
  operation: SendOperation
  sender: Sender
  /** Null without an inbox. */
  thread: { id: ThreadId; isNew: boolean; subject: string } | null
  subject: string
  replyTo?: Mailbox
  inReplyTo: string | null
  references: string[]
  /** The TLS that its sender asks for. Absent: that of the recipients' domains. */
  tlsWish?: TlsWish | null
}

/** Keeps each address once, in the given order, regardless of case. */
export function addressTo(given: { to: Mailbox[]; cc?: Mailbox[]; bcc?: Mailbox[] }): Addressed {
  const seen = new Map<string, Recipient>()
  const take = (mailboxes: Mailbox[] = []): Mailbox[] =>
    mailboxes.flatMap((one) => {
      const { mailbox, key, domain } = canonical(one)
      if (seen.has(key)) return []
      seen.set(key, { email: mailbox.email, key, domain })
      return [mailbox]
    })
  const [to, cc, bcc] = [take(given.to), take(given.cc), take(given.bcc)]
  return { to, cc, bcc, recipients: [...seen.values()] }
}

/** Returns the mailbox with its address in canonical form, its address key and its domain. Other code sees only this form. */
export function canonical(given: Mailbox): { mailbox: Mailbox; key: string; domain: string } {
  const address = readEmail(given.email)
  if (!address) throw new Error('an address that the schema let through does not parse')
  const { email, key, domain } = address
  return { mailbox: { ...given, email }, key, domain }
}

/** The size in bytes of texts and attachments, as given, or of a message that a client wrote. */
export function contentBytes(body: SendBody): number {
  if ('raw' in body) return body.raw.sizeBytes
  const { text = '', html = '', attachments = [] } = body
  const attachedBytes = attachments.reduce((sum, { content }) => sum + content.length, 0)
  return Buffer.byteLength(text) + Buffer.byteLength(html) + attachedBytes
}
