// What a send is before anything is made of it: who sends it, to whom, in which thread.
import type { InboxId, ThreadId } from '../../base/ids.ts'
import { type Mailbox, readEmail } from '../../mail/address.ts'
import type { MessageRow } from '../../store/mailbox/messages.ts'
import type { SendOperation } from '../../store/sending/submissions.ts'

export interface AttachmentBody {
  filename: string
  contentType: string
  content: Buffer
  contentId?: string
}

/** What a program says of a new message. */
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

/** What a program says of a message through a domain, without an inbox. */
export interface DomainMessageBody extends MessageBody {
  from: Mailbox
  /** Further header fields. */
  headers?: Record<string, string>
}

/** What a program says of a reply. */
export interface ReplyBody {
  targetMessageId: string
  text?: string
  html?: string
  replyAll?: boolean
  attachments?: AttachmentBody[]
  metadata?: MessageRow['metadata']
  purpose?: string
}

export type SendBody = MessageBody | ReplyBody | DomainMessageBody

export interface Sender {
  /** The inbox; null where the mail goes out through a domain alone. */
  id: InboxId | null
  mailbox: Mailbox
  domain: string
  /** Null for the managed domain, and for one that is not proved. */
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
  /** All of them, in that order. */
  recipients: Recipient[]
}

/** What differs between a new message, a reply and a send through a domain. */
export interface SendDraft extends Addressed {
  operation: SendOperation
  sender: Sender
  /** Null where there is no inbox. */
  thread: { id: ThreadId; isNew: boolean; subject: string } | null
  subject: string
  replyTo?: Mailbox
  inReplyTo: string | null
  references: string[]
}

/** Each address once, in the order given, whatever its case. */
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

/** The mailbox with its address in the one form that everything else sees. */
export function canonical(given: Mailbox): { mailbox: Mailbox; key: string; domain: string } {
  const address = readEmail(given.email)
  if (!address) throw new Error('an address that the schema let through does not parse')
  const { email, key, domain } = address
  return { mailbox: { ...given, email }, key, domain }
}

/** Bytes of texts and attachments, as they are given. */
export function contentBytes({ text = '', html = '', attachments = [] }: SendBody): number {
  const attachedBytes = attachments.reduce((sum, { content }) => sum + content.length, 0)
  return Buffer.byteLength(text) + Buffer.byteLength(html) + attachedBytes
}
