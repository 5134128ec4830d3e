// What a send is before it is accepted: its recipients, its size, and what the key's restrictions say of it.
import { createHash } from 'node:crypto'
import type { RefusalCode } from '../../base/errors.ts'
import { type Mailbox, readEmail } from '../../mail/address.ts'
import type { AttachmentEntry, MessageRow } from '../../store/messages.ts'
import type { Caller } from '../caller.ts'

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

export interface Recipient {
  email: string
  key: string
  domain: string
}

/** A refusal that holds only if the send is neither a replay nor addressed to what does not exist. */
export interface Refusal {
  code: RefusalCode
  detail?: string
  retryAfterSeconds?: number
}

/** Everything that is settled about a send before the database decides. */
export interface SendDraft {
  recipients: Recipient[]
  to: Mailbox[]
  cc: Mailbox[]
  bcc: Mailbox[]
  contentBytes: number
  refusal: Refusal | null
}

/** Settles recipients and policy: each address once, in the order given, whatever its case. */
export function draftSend(
  caller: Caller,
  addressed: { to: Mailbox[]; cc: Mailbox[]; bcc: Mailbox[] },
  body: { text?: string; html?: string; purpose?: string; attachments?: AttachmentBody[] },
): SendDraft {
  const seen = new Map<string, Recipient>()
  const take = (mailboxes: Mailbox[]): Mailbox[] =>
    mailboxes.flatMap((given) => {
      const { mailbox, key, domain } = canonical(given)
      if (seen.has(key)) return []
      seen.set(key, { email: mailbox.email, key, domain })
      return [mailbox]
    })
  const [to, cc, bcc] = [take(addressed.to), take(addressed.cc), take(addressed.bcc)]
  const contentBytes =
    Buffer.byteLength(body.text ?? '') +
    Buffer.byteLength(body.html ?? '') +
    (body.attachments ?? []).reduce((sum, { content }) => sum + content.length, 0)
  const recipients = [...seen.values()]
  return {
    recipients,
    to,
    cc,
    bcc,
    contentBytes,
    refusal: judge(caller, recipients, contentBytes, body.purpose),
  }
}

/** The mailbox with its address in the one form that everything else sees. */
export function canonical(given: Mailbox): { mailbox: Mailbox; key: string; domain: string } {
  const address = readEmail(given.email)
  if (!address) throw new Error('an address that the schema let through does not parse')
  const { email, key, domain } = address
  return { mailbox: { ...given, email }, key, domain }
}

function judge(
  caller: Caller,
  recipients: Recipient[],
  contentBytes: number,
  purpose: string | undefined,
): Refusal | null {
  if (purpose === 'marketing') return { code: 'marketing_not_available' }
  const allowed = caller.allowedRecipientDomains
  const stranger = allowed && recipients.find(({ domain }) => !allowed.includes(domain))
  if (stranger)
    return { code: 'recipient_domain_not_allowed', detail: `The API key may not send to ${stranger.domain}.` }
  const { recipientsPerMessage } = caller.limits
  if (recipients.length > recipientsPerMessage) {
    return {
      code: 'too_many_recipients',
      detail: `The message has ${recipients.length} recipients; at most ${recipientsPerMessage} are allowed.`,
    }
  }
  return judgeSize(caller, contentBytes)
}

/** Judged of what is given, and again with the text that is made of its HTML. */
export function judgeSize({ limits }: Caller, contentBytes: number): Refusal | null {
  if (contentBytes <= limits.messageContentBytes) return null
  return {
    code: 'message_too_large',
    detail: `The message has ${contentBytes} bytes of content; at most ${limits.messageContentBytes} are allowed.`,
  }
}

/** The entries of outbound attachments, in order; their bytes go to the message's raw row in the same order. */
export function attachmentEntries(attachments: AttachmentBody[]): AttachmentEntry[] {
  return attachments.map(({ filename, contentType, content, contentId }) => ({
    filename,
    contentType,
    size: content.length,
    disposition: contentId === undefined ? 'attachment' : 'inline',
    contentId: contentId ?? null,
    sha256: createHash('sha256').update(content).digest('hex'),
    scanState: 'unscanned',
  }))
}
