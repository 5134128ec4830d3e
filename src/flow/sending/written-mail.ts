// Mail that a client wrote: its parts as a send, and the inbox or domain that its From field names.

import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { type Mailbox, readEmail } from '../../mail/address.ts'
import type { ReadMail } from '../../mail/parse-worker.ts'
import type { WrittenHeader } from '../../mail/write/written-header.ts'
import type { Db } from '../../postgres/db.ts'
import { findAncestor, findMessage } from '../../store/mailbox/messages.ts'
import type { RawRow } from '../../store/mailbox/raws.ts'
import { type Caller, hasScope, type SendingCaller } from '../caller.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import type { TlsWish } from '../route-policy.ts'
import { replyRecipients } from './reply-draft.ts'
import { addressTo, canonical, type SendDraft, type WrittenBody } from './send-draft.ts'
import { requireSendingKey } from './send-policy.ts'
import type { Senders } from './senders.ts'

/** A caller whose scopes decide how mail may be sent. */
export type WritingCaller = SendingCaller & Pick<Caller, 'scopes'>

/** A mail that is stored and sent as a client wrote it. */
export interface WrittenMail {
  from: Mailbox
  /** The recipients of the envelope. */
  envelope: Mailbox[]
  /** As its header shows them. */
  to: Mailbox[]
  cc: Mailbox[]
  replyTo: Mailbox | null
  subject: string
  inReplyTo: string | null
  references: string[]
  body: WrittenBody
  /** The TLS that its sender asks for. */
  tlsWish: TlsWish | null
}

/** Makes the mail of its prepared header, its parsed content and its envelope. */
export function compileWritten(
  { from, messageId, metadata, purpose, tlsWish }: Omit<WrittenHeader, 'bytes' | 'isWide'>,
  parsed: ReadMail,
  raw: RawRow,
  envelope: Mailbox[],
): WrittenMail {
  const { to, cc, replyTo, subject, inReplyTo, references, attachments } = parsed
  const html = parsed.html === null ? {} : { html: textOf(parsed.html) }
  const entries = attachments.map(({ sizeBytes, ...entry }) => ({
    ...entry,
    size: sizeBytes,
    scanState: 'unscanned' as const,
  }))
  const texts = { text: textOf(parsed.text), ...html }
  const body: WrittenBody = { raw, messageId, entries, metadata, ...texts, ...(purpose && { purpose }) }
  return { from, envelope, to, cc, replyTo, subject, inReplyTo, references, body, tlsWish }
}

function textOf(given: string | Uint8Array): string {
  return typeof given === 'string' ? given : Buffer.from(given).toString()
}

interface DraftDeps {
  db: Db
  clock: Clock
  domains: ProvedDomains
  senders: Senders
}

/** Makes the draft. Throws the refusal if the key may not send from the address in From. */
export async function draftWritten(
  deps: DraftDeps,
  caller: WritingCaller,
  mail: WrittenMail,
): Promise<SendDraft> {
  const { mailbox, domain, key } = canonical(mail.from)
  const inboxId = await deps.senders.findId(caller, key)
  requireScope(caller, inboxId ? 'mailbox:send' : 'delivery:send')
  const { subject, inReplyTo, references, tlsWish } = mail
  const named = { subject, inReplyTo, references, tlsWish }
  const fields = { ...addressing(mail), ...named, operation: 'submission' as const }
  const replyTo = mail.replyTo && { replyTo: mail.replyTo }
  if (inboxId) {
    const thread = await findThreadFor(deps, caller, inboxId, mail)
    const { id, domainId } = await deps.senders.find(caller, inboxId)
    return { ...fields, ...replyTo, sender: { id, mailbox, domain, domainId }, thread }
  }
  requireSendingKey(caller, 'submission', null)
  const proved = await deps.domains.findSending(caller.organizationId, domain)
  return {
    ...fields,
    ...replyTo,
    sender: { id: null, mailbox, domain, domainId: proved?.id ?? null },
    thread: null,
  }
}

function requireScope(caller: WritingCaller, scope: 'mailbox:send' | 'delivery:send'): void {
  if (hasScope(caller, scope)) return
  const from = scope === 'mailbox:send' ? 'an inbox' : 'a domain'
  throw new ServiceError('insufficient_scope', `Sending from ${from} needs a key with the scope ${scope}.`)
}

/** The envelope decides the recipients. Those that the header does not name are hidden. */
function addressing({ envelope, to, cc }: WrittenMail): Pick<SendDraft, 'to' | 'cc' | 'bcc' | 'recipients'> {
  const named = new Set([...to, ...cc].map(({ email }) => readEmail(email)?.key))
  const { to: all, recipients } = addressTo({ to: envelope })
  const bcc = all.filter(({ email }) => !named.has(readEmail(email)?.key))
  return { to, cc, bcc, recipients }
}

/**
 * Returns the thread of the message that the mail answers, or a new one. Security: a key that may only reply may write only
 * to those whom a reply through the API would reach, so an In-Reply-To field opens no other addresses.
 */
async function findThreadFor(
  { db, clock }: DraftDeps,
  caller: WritingCaller,
  inboxId: string,
  mail: WrittenMail,
): Promise<NonNullable<SendDraft['thread']>> {
  // RFC 5322 3.6.4: the parent first, then the references from the nearest to the root.
  const ids = [...new Set([mail.inReplyTo ?? [], ...mail.references.toReversed()].flat())]
  const target = ids.length > 0 ? await findAncestor(db, inboxId, ids) : null
  const answered =
    target && caller.sendMode === 'reply_only'
      ? await findMessage(db, caller.organizationId, target.id)
      : null
  const reached = answered ? replyRecipients(answered, mail.from.email, 'all') : { to: [], cc: [] }
  const allowed = new Set([...reached.to, ...reached.cc].map(({ email }) => readEmail(email)?.key))
  const isReply = answered !== null && mail.envelope.every(({ email }) => allowed.has(readEmail(email)?.key))
  requireSendingKey(caller, isReply ? 'reply' : 'submission', inboxId)
  if (target) return { id: target.threadId, isNew: false, subject: mail.subject }
  return { id: newId('thread', clock.nowMs()), isNew: true, subject: mail.subject }
}
