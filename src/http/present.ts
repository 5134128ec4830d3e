// Turns rows into the objects that the API shows.
import type { Static } from 'typebox'
import { attachmentIdOf, type MessageId, queueIdOf } from '../base/ids.ts'
import type { Caller } from '../flow/caller.ts'
import type { ReceivedHeader } from '../flow/reading/read-header.ts'
import type { Accepted, AcceptedSend } from '../flow/sending/accept-send.ts'
import { messageStatusOf } from '../flow/states.ts'
import type { EventRow } from '../store/events/events.ts'
import type { InboxRow } from '../store/mailbox/inboxes.ts'
import type { AttachmentEntry, MailboxValue, MessageRow, ThreadRow } from '../store/mailbox/messages.ts'
import type { ComplaintRow } from '../store/sending/complaints.ts'
import type { SubmissionRow } from '../store/sending/submissions.ts'
import type { SuppressionRow } from '../store/sending/suppressions.ts'
import type { Inbox } from './schemas/inbox.ts'
import type { Message, MessageHeader } from './schemas/message.ts'
import type { Profile } from './schemas/profile.ts'
import type { Acceptance, SendAcceptance } from './schemas/send.ts'
import type { EventList, Submission } from './schemas/submission.ts'
import type { Complaint, Suppression } from './schemas/suppression.ts'
import type { ThreadList } from './schemas/thread.ts'

type View<Named extends { definition: object }> = Static<Named['definition']>

/** The key's permissions, and how much of its allowance the organization has used. */
export function presentProfile(caller: Caller, managedUsed: number): View<typeof Profile> {
  const { limits } = caller
  return {
    organization: {
      id: caller.organizationId,
      status: caller.organizationStatus,
      sendLimits: {
        messagesPerMinute: limits.messagesPerMinute,
        messagesPerDay: limits.messagesPerDay,
        recipientsPerDay: limits.recipientsPerDay,
      },
    },
    apiKey: {
      id: caller.id,
      kind: caller.kind,
      scopes: caller.scopes,
      inboxIds: caller.inboxIds,
      allowedIps: caller.allowedIps,
      sendMode: caller.sendMode,
      allowedRecipientDomains: caller.allowedRecipientDomains,
      expiresAt: caller.expiresAt?.toISOString() ?? null,
      requestsPerMinute: caller.requestsPerMinute,
    },
    managedStarter: {
      limit: limits.managedStarter,
      used: managedUsed,
      remaining: Math.max(0, limits.managedStarter - managedUsed),
    },
    platformLimits: {
      recipientsPerMessage: limits.recipientsPerMessage,
      messageContentBytes: limits.messageContentBytes,
      inboxes: limits.inboxes,
      domains: limits.domains,
      inboxesPerDomain: limits.inboxesPerDomain,
      webhookEndpoints: limits.webhookEndpoints,
    },
  }
}

export function presentInbox(row: InboxRow): View<typeof Inbox> {
  return {
    id: row.id,
    localPart: row.localPart,
    domainId: row.domainId,
    domainKind: row.domainId ? 'customer' : 'managed',
    domain: row.domain,
    address: `${row.localPart}@${row.domain}`,
    displayName: row.displayName,
    status: 'active',
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

/**
 * Returns a message as the API shows it; Bcc recipients only if we sent it. A `LongText` is passed on without being
 * read.
 */
export function presentMessage(row: MessageRow): View<typeof Message> {
  const { to, cc, bcc, replyTo } = row.recipients
  const isInbound = row.direction === 'inbound'
  return {
    id: row.id,
    inboxId: row.inboxId,
    threadId: row.threadId,
    direction: row.direction,
    internetMessageId: row.internetMessageId,
    inReplyTo: row.inReplyTo,
    references: row.referenceIds,
    from: presentMailbox(row.sender),
    to: to.map(presentMailbox),
    ...(cc && cc.length > 0 && { cc: cc.map(presentMailbox) }),
    ...(!isInbound && bcc && bcc.length > 0 && { bcc: bcc.map(presentMailbox) }),
    ...(replyTo && { replyTo: presentMailbox(replyTo) }),
    subject: row.subject,
    text: row.text as string,
    ...(row.html !== null && { html: row.html as string }),
    ...(isInbound && row.extractedText !== null && { extractedText: row.extractedText as string }),
    ...(row.isCut && { truncated: true }),
    metadata: row.metadata,
    delivery: presentDelivery(row),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    ...((isInbound || row.attachments.length > 0) && { attachments: presentAttachments(row) }),
    ...(isInbound && { automatic: row.isAutomatic }),
    ...(isInbound && row.security && { inboundSecurity: presentSecurity(row.security, row.attachments) }),
    purpose: row.purpose as View<typeof Message>['purpose'],
  }
}

/**
 * Returns the header of a received message. Fields that come from the database later are passed on without being read.
 */
export function presentHeader({ fields, isCut }: ReceivedHeader): View<typeof MessageHeader> {
  return { headers: fields as never, ...(isCut && { truncated: true }) }
}

export function presentMailbox({ email, name }: MailboxValue): MailboxValue {
  return name ? { email, name } : { email }
}

function presentDelivery(row: MessageRow): View<typeof Message>['delivery'] {
  if (row.direction === 'inbound') return { submissionId: null, status: 'received', failureCode: null }
  return {
    submissionId: row.submissionId,
    status: messageStatusOf(row.submissionStatus ?? 'pending'),
    failureCode: row.failureCode,
  }
}

function presentAttachments({ id, attachments }: { id: MessageId; attachments: AttachmentEntry[] }) {
  return attachments.map(({ span, ...entry }, index) => ({
    id: attachmentIdOf(id, index),
    ...entry,
  }))
}

const worstFirst = ['infected', 'failed', 'unscanned', 'clean'] as const

function presentSecurity(
  { smtp, authentication, listedBy, spam, content }: NonNullable<MessageRow['security']>,
  attachments: AttachmentEntry[],
) {
  const worst = worstFirst.find((state) => attachments.some(({ scanState }) => scanState === state))
  return {
    trust: 'untrusted' as const,
    smtp,
    authentication,
    ...(listedBy && { listedBy }),
    ...(spam && { spam }),
    attachments: worst ?? ('none' as const),
    ...(content && { content }),
  }
}

/** A thread as lists show it, without its messages. */
export function presentThread(row: ThreadRow): View<typeof ThreadList>['threads'][number] {
  return {
    id: row.id,
    inboxId: row.inboxId,
    subject: row.subject,
    participants: row.participants,
    messageCount: row.messageCount,
    lastMessageAt: row.lastMessageAt.toISOString(),
  }
}

export function presentSubmission(row: SubmissionRow): View<typeof Submission> {
  const isTaken = row.recipients.some(({ attempts }) => attempts > 0)
  return {
    id: row.id,
    from: presentMailbox(row.sender),
    recipients: row.recipients.map(({ email, status, response, failureCode, updatedAt }) => ({
      email,
      status,
      response,
      failureCode,
      updatedAt: new Date(updatedAt).toISOString(),
    })),
    subject: row.subject,
    metadata: row.metadata,
    status: row.status,
    queueId: isTaken ? queueIdOf(row.id) : null,
    response: row.response,
    failureCode: row.failureCode,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    purpose: row.purpose as View<typeof Submission>['purpose'],
  }
}

export function presentAccepted({ message, submission, replayed }: Accepted): View<typeof Acceptance> {
  return { message: presentMessage(message), submission: presentSubmission(submission), replayed }
}

export function presentAcceptedSend({ submission, replayed }: AcceptedSend): View<typeof SendAcceptance> {
  return { ...presentSubmission(submission), replayed }
}

export function presentEvent(row: EventRow, submissionId: string): View<typeof EventList>['events'][number] {
  const { id, recipient, attempt, response, enhancedStatus, classification, failureCode } = row
  const remote = row.remote && { host: row.remote.host, ip: row.remote.ip, tls: row.remote.tls }
  return {
    id,
    submissionId,
    recipient,
    type: row.type,
    at: row.at.toISOString(),
    attempt,
    remote,
    response,
    enhancedStatus,
    classification,
    failureCode,
  }
}

export function presentSuppression(row: SuppressionRow): View<typeof Suppression> {
  const { email, reason, submissionId, createdAt } = row
  return { email, reason, submissionId, createdAt: createdAt.toISOString() }
}

export function presentComplaint(row: ComplaintRow): View<typeof Complaint> {
  const { id, email, submissionId, messageId, feedbackType, userAgent, reportedBy } = row
  return {
    id,
    email,
    submissionId,
    messageId,
    userAgent,
    reportedBy,
    feedbackType: feedbackType as View<typeof Complaint>['feedbackType'],
    arrivedAt: row.arrivedAt.toISOString(),
    createdAt: row.createdAt.toISOString(),
  }
}
