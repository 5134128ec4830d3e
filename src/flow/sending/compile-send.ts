// Makes the rows of a send, for the database and for the API's answer. Does no I/O.
import { newId, newUuidAt, type SubmissionId } from '../../base/ids.ts'
import type { MessageRow } from '../../store/mailbox/messages.ts'
import type { NewSend } from '../../store/sending/sends.ts'
import type { SendingCaller } from '../caller.ts'
import { usualPurpose } from '../source-pools.ts'
import type { SendContent } from './send-contents.ts'
import type { ComposedBody, SendBody, SendDraft } from './send-draft.ts'

export interface Circumstances {
  idempotency: NewSend['idempotency']
  content: SendContent
  /** The queue of each recipient's domain. */
  routes: ReadonlyMap<string, string>
  lifetimeMs: number
  at: Date
}

export function compileSend(
  caller: SendingCaller,
  draft: SendDraft,
  body: SendBody,
  { idempotency, content, routes, lifetimeMs, at }: Circumstances,
): NewSend {
  const { operation, sender, thread, recipients } = draft
  const id = newId('message', at.getTime())
  const common = {
    organizationId: caller.organizationId,
    sender: sender.mailbox,
    subject: draft.subject,
    metadata: body.metadata ?? {},
    purpose: body.purpose ?? usualPurpose,
    createdAt: at,
    updatedAt: at,
  }
  const submission = { ...common, ...pendingSubmission(draft, at), messageId: thread && id }
  const isRaw = 'raw' in body
  const text = {
    internetMessageId: isRaw ? body.messageId : `<${id.slice(4)}@${sender.domain}>`,
    recipients: visibleRecipients(draft),
    text: content.text,
    html: body.html ?? null,
  }
  const submissionId = submission.id
  const message = thread && {
    ...common,
    ...text,
    ...sentMessage(draft, content),
    id,
    submissionId,
    threadId: thread.id,
    inboxId: sender.id!,
  }
  return {
    keyId: caller.id,
    isUncounted: caller.isUncounted ?? false,
    operation,
    idempotency,
    submission,
    message,
    content: message ? null : { ...text, domainId: sender.domainId!, rawId: isRaw ? body.raw.id : null },
    isRaw,
    headers: isRaw ? {} : furtherFields(caller, body),
    thread: thread && { isNew: thread.isNew, subject: thread.subject, participants: participantsOf(draft) },
    deliveries: recipients.map((recipient) => ({ ...recipient, route: routes.get(recipient.domain)! })),
    expiresAt: new Date(at.getTime() + lifetimeMs),
  }
}

/** Returns the additional header fields: those of the request, and `Auto-Submitted` if an agent sends. */
function furtherFields({ kind }: SendingCaller, body: ComposedBody): Record<string, string> {
  const given = 'from' in body ? body.headers : undefined
  // RFC 3834 5: without this field, two agents could answer each other for ever.
  return { ...given, ...(kind === 'agent' && { 'Auto-Submitted': 'auto-generated' }) }
}

function pendingSubmission({ sender, recipients }: SendDraft, at: Date) {
  const updatedAt = at.toISOString()
  const pending = { status: 'pending' as const, response: null, failureCode: null }
  return {
    id: newUuidAt<SubmissionId>(at.getTime()),
    inboxId: sender.id,
    recipients: recipients.map(({ email }) => {
      return { ...pending, email, updatedAt, attempts: 0 }
    }),
    ...pending,
  }
}

function sentMessage({ inReplyTo, references }: SendDraft, { attachments, raw }: SendContent) {
  return {
    seq: 0, // given by the database
    direction: 'outbound' as const,
    inReplyTo,
    referenceIds: references,
    extractedText: null,
    isCut: false,
    attachments,
    security: null,
    isAutomatic: false,
    submissionStatus: 'pending' as const,
    failureCode: null,
    rawId: raw?.id ?? null,
  }
}

function participantsOf({ sender, to, cc }: SendDraft): string[] {
  return [...new Set([sender.mailbox, ...to, ...cc].map(({ email }) => email))].filter(
    (email) => email !== '',
  )
}

function visibleRecipients({ to, cc, bcc, replyTo }: SendDraft): MessageRow['recipients'] {
  return {
    to,
    ...(cc.length > 0 && { cc }),
    ...(bcc.length > 0 && { bcc }),
    ...(replyTo && { replyTo }),
  }
}
