// Puts a send into the form in which it is stored; pure.
import { type InboxId, newId, newUuid, newUuidAt, type SubmissionId, type ThreadId } from '../../base/ids.ts'
import type { Mailbox } from '../../mail/address.ts'
import type { AttachmentEntry, MessageRow } from '../../store/messages.ts'
import type { RawRow } from '../../store/raws.ts'
import type { NewSend, SendOperation, SubmissionRow } from '../../store/submissions.ts'
import type { Caller } from '../caller.ts'
import type { Idempotency } from '../idempotency.ts'
import {
  attachmentEntries,
  canonical,
  type DomainMessageBody,
  type MessageBody,
  type ReplyBody,
  type SendDraft,
} from './send-draft.ts'

export interface Sender {
  /** The inbox; null where the mail goes out through a domain alone. */
  id: InboxId | null
  mailbox: Mailbox
  domain: string
  /** Null for the managed domain. */
  domainId: string | null
}

type Body = MessageBody | ReplyBody | DomainMessageBody

/** What differs between a new message, a reply and a send through a domain. */
export interface SendFrame {
  operation: SendOperation
  sender: Sender
  /** Null where there is no inbox. */
  thread: { id: ThreadId; kind: 'new' | 'known'; subject: string } | null
  subject: string
  inReplyTo: string | null
  references: string[]
}

/** Stands where there is no inbox: such a send can only turn out to be a replay. */
export const nobody: Sender = { id: '' as InboxId, mailbox: { email: '' }, domain: '', domainId: null }

/** The frame of a reply to what does not exist. */
export function nowhere(threadId: ThreadId): SendFrame {
  const thread = { id: threadId, kind: 'known' as const, subject: '' }
  return { operation: 'reply', sender: nobody, thread, subject: '', inReplyTo: null, references: [] }
}

/** What is made out of a body before it is stored; of one that is refused nothing is. */
export interface SendContent {
  text: string
  attachments: AttachmentEntry[]
  /** The attachments' bytes, one after the other, or null where there are none. */
  raw: RawRow | null
}

export const noContent: SendContent = { text: '', attachments: [], raw: null }

export function contentOf(body: Body, text: string): SendContent {
  return { text, attachments: attachmentEntries(body.attachments ?? []), raw: attachmentBytes(body) }
}

function attachmentBytes({ attachments = [] }: Body): RawRow | null {
  if (attachments.length === 0) return null
  const bytes = Buffer.concat(attachments.map(({ content }) => content))
  return { id: newUuid(), sizeBytes: bytes.length, bytes, blob: null }
}

export interface Circumstances {
  idempotency: Idempotency
  content: SendContent
  /** The queue of each recipient's domain. */
  routes: ReadonlyMap<string, string>
  lifetimeMs: number
  at: Date
}

export function compileSend(
  caller: Caller,
  frame: SendFrame,
  draft: SendDraft,
  body: Body,
  { idempotency, content, routes, lifetimeMs, at }: Circumstances,
): NewSend {
  const { sender, thread } = frame
  const id = newId('message', at.getTime())
  return {
    org: caller.organizationId,
    key: caller.id,
    op: frame.operation,
    idem: idempotency.key,
    hash: idempotency.requestHash,
    refusal: draft.refusal?.code ?? null,
    inbox: sender.id,
    thread: thread?.id ?? null,
    fresh: thread && thread.kind === 'new',
    sub: newUuidAt<SubmissionId>(at.getTime()),
    id: sender.id && id,
    mid: `<${id.slice(4)}@${sender.domain}>`,
    irt: frame.inReplyTo,
    refs: frame.references,
    sender: sender.mailbox,
    rcpts: shownRecipients(draft, 'replyTo' in body ? body.replyTo : undefined),
    participants: [sender.mailbox, ...draft.to, ...draft.cc].map(({ email }) => email),
    subject: frame.subject,
    thread_subject: thread?.subject ?? '',
    body: content.text,
    html: (draft.refusal ? null : body.html) ?? null,
    metadata: body.metadata ?? {},
    purpose: body.purpose ?? 'unclassified',
    attachments: content.attachments,
    raw: content.raw?.id ?? null,
    deliveries: draft.recipients.map(({ email, key, domain }, position) => {
      return { position, email, key, domain, route: routes.get(domain)! }
    }),
    at,
    expires_at: new Date(at.getTime() + lifetimeMs),
    domain_id: 'from' in body ? sender.domainId : null,
    headers: 'from' in body ? (body.headers ?? {}) : null,
  }
}

function shownRecipients({ to, cc, bcc }: SendDraft, replyTo: Mailbox | undefined): MessageRow['recipients'] {
  return {
    to,
    ...(cc.length > 0 && { cc }),
    ...(bcc.length > 0 && { bcc }),
    ...(replyTo && { replyTo: canonical(replyTo).mailbox }),
  }
}

/**
 * The rows of an accepted send, as they were just written, with the positions of recipients that are suppressed; without
 * an inbox there is no message.
 */
export function acceptedOf(
  caller: Caller,
  send: NewSend,
  suppressed: number[],
): { message: MessageRow | null; submission: SubmissionRow; replayed: false } {
  return {
    message: messageOf(caller, send),
    submission: submissionOf(caller, send, suppressed),
    replayed: false,
  }
}

function messageOf({ organizationId }: Caller, send: NewSend): MessageRow | null {
  const { id, inbox, thread } = send
  if (id === null || inbox === null || thread === null) return null
  return {
    id,
    organizationId,
    inboxId: inbox,
    threadId: thread,
    seq: 0,
    direction: 'outbound',
    internetMessageId: send.mid,
    inReplyTo: send.irt,
    referenceIds: send.refs,
    sender: send.sender,
    recipients: send.rcpts,
    subject: send.subject,
    text: send.body,
    html: send.html,
    extractedText: null,
    isCut: false,
    metadata: send.metadata,
    purpose: send.purpose,
    attachments: send.attachments,
    security: null,
    submissionId: send.sub,
    submissionStatus: 'pending',
    failureCode: null,
    rawId: send.raw,
    createdAt: send.at,
    updatedAt: send.at,
  }
}

function submissionOf({ organizationId }: Caller, send: NewSend, suppressed: number[]): SubmissionRow {
  const updatedAt = send.at.toISOString()
  return {
    id: send.sub,
    organizationId,
    inboxId: send.inbox,
    messageId: send.id,
    sender: send.sender,
    recipients: send.deliveries.map(({ email, position }) => ({
      email,
      status: suppressed.includes(position) ? 'suppressed' : 'pending',
      response: null,
      updatedAt,
      attempts: 0,
    })),
    subject: send.subject,
    metadata: send.metadata,
    purpose: send.purpose,
    status: 'pending',
    response: null,
    failureCode: null,
    createdAt: send.at,
    updatedAt: send.at,
  }
}
