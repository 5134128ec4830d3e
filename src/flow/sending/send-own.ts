// Accepts the service's own mail as a message of an inbox. It has the inbox's domain and a delivery timeline, like any other.

import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/digest.ts'
import { type RefusalCode, ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import { findOrganization } from '../../store/accounts/organizations.ts'
import { findInboxesByAddress } from '../../store/mailbox/inboxes.ts'
import type { SendingCaller } from '../caller.ts'
import type { OwnMail, OwnSendResult } from '../own-mail.ts'
import type { Acceptance } from './accept-send.ts'

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
  { db, clock, acceptance, volume }: OwnSendingDeps,
  from: string,
  { key, to, subject, text, attachments }: OwnMail,
): Promise<OwnSendResult> {
  const [inbox] = await findInboxesByAddress(db, [from], clock.now())
  const organization = inbox ? await findOrganization(db, inbox.organizationId) : null
  if (!inbox || !organization) return { status: 'later', code: 'not_found' }
  const { id: organizationId, limits } = organization
  const sending: SendingCaller = {
    id: null,
    kind: null,
    organizationId,
    limits,
    inboxIds: [inbox.id],
    sendMode: 'new_and_reply',
    allowedRecipientDomains: null,
    isUncounted: volume === 'uncounted',
  }
  const body = { to: [{ email: to }], subject, text, attachments, purpose: 'transactional' }
  try {
    const idempotency = { key, requestHash: sha256(key) }
    const { submission } = await acceptance.acceptMessage(sending, inbox.id, body, idempotency)
    return { status: 'accepted', submissionId: submission.id }
  } catch (error) {
    // A refusal is a normal result here, as there is no client to report it to. All other errors are rethrown.
    if (!(error instanceof ServiceError)) throw error
    return { status: lasting.includes(error.code) ? 'refused' : 'later', code: error.code }
  }
}
