// Accepts the service's own mail as a message of an inbox. It has the inbox's domain and a delivery timeline, like any other.

import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/digest.ts'
import { type RefusalCode, ServiceError } from '../../base/errors.ts'
import { newUuid, type SubmissionId } from '../../base/ids.ts'
import { compose } from '../../mail/write/compose.ts'
import type { Db } from '../../postgres/db.ts'
import { findOrganization } from '../../store/accounts/organizations.ts'
import { type AddressedInbox, findInboxesByAddress } from '../../store/mailbox/inboxes.ts'
import type { OwnMail, OwnReport, OwnSendResult } from '../own-mail.ts'
import type { Acceptance } from './accept-send.ts'
import type { SendContents } from './send-contents.ts'
import { addressTo } from './send-draft.ts'
import { compileWritten, type WritingCaller } from './written-mail.ts'

/** Permanent refusals: because of the address, or because the key was used before. */
const lasting: readonly RefusalCode[] = [
  'all_recipients_suppressed',
  'recipient_domain_not_allowed',
  'message_too_large',
  'idempotency_key_reused',
  'idempotency_result_expired',
]

interface OwnSendingDeps {
  db: Db
  clock: Clock
  acceptance: Acceptance
  /** Whether the mail counts for the limits of the inbox's organization. If `uncounted`, the caller must limit the volume. */
  volume: 'counted' | 'uncounted'
}

/** Accepts the mail, or returns why not. Each key is accepted once. `from` is the address of an existing inbox. */
export async function sendOwn(
  deps: OwnSendingDeps,
  from: string,
  { key, to, subject, text, attachments }: OwnMail,
): Promise<OwnSendResult> {
  return await asInbox(deps, from, async (sending, inbox) => {
    const body = { to: [{ email: to }], subject, text, attachments, purpose: 'transactional' }
    const idempotency = { key, requestHash: sha256(key) }
    const { submission } = await deps.acceptance.acceptMessage(sending, inbox.id, body, idempotency)
    return submission.id
  })
}

/** Accepts the report, or returns why not. It is stored as the bytes that are sent. */
export async function sendOwnReport(
  deps: OwnSendingDeps & { contents: Pick<SendContents, 'read'> },
  from: string,
  { to, reportType, messageId, headers, subject, text, attachments }: OwnReport,
): Promise<OwnSendResult> {
  return await asInbox(deps, from, async (sending) => {
    const { to: envelope, recipients } = addressTo({ to: [{ email: to }] })
    const bytes = compose({
      from: { email: from },
      to: envelope,
      cc: [],
      replyTo: null,
      subject,
      text,
      html: null,
      messageId,
      inReplyTo: null,
      references: [],
      date: deps.clock.now(),
      headers,
      attachments: attachments.map((one) => ({ ...one, contentId: null, disposition: 'attachment' })),
      reportType,
      seed: messageId,
    })
    const raw = { id: newUuid(), sizeBytes: bytes.length, bytes, blob: null }
    const parsed = await deps.contents.read(sending, raw, recipients)
    const written = { from: { email: from }, messageId, metadata: {}, purpose: 'transactional' }
    const mail = compileWritten({ ...written, tlsWish: 'optional' }, parsed, raw, envelope)
    const { submission } = await deps.acceptance.acceptWritten(sending, mail)
    return submission.id
  })
}

/** Runs `accept` as the inbox with the address `from`, and turns refusals into results. */
async function asInbox(
  { db, clock, volume }: OwnSendingDeps,
  from: string,
  accept: (sending: WritingCaller, inbox: AddressedInbox) => Promise<SubmissionId>,
): Promise<OwnSendResult> {
  const [inbox] = await findInboxesByAddress(db, [from], clock.now())
  const organization = inbox ? await findOrganization(db, inbox.organizationId) : null
  if (!inbox || !organization) return { status: 'later', code: 'not_found' }
  const { id: organizationId, limits } = organization
  const sending: WritingCaller = {
    id: null,
    kind: null,
    organizationId,
    limits,
    inboxIds: [inbox.id],
    scopes: ['mailbox:send'],
    sendMode: 'new_and_reply',
    allowedRecipientDomains: null,
    confirmNewRecipients: false,
    isUncounted: volume === 'uncounted',
  }
  try {
    return { status: 'accepted', submissionId: await accept(sending, inbox) }
  } catch (error) {
    // A refusal is a normal result here, as there is no client to report it to. All other errors are rethrown.
    if (!(error instanceof ServiceError)) throw error
    return { status: lasting.includes(error.code) ? 'refused' : 'later', code: error.code }
  }
}
