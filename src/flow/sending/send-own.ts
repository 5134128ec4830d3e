// Accepts mail of the service's own, as a message of the inbox that its operator has named: with that one's domain and trace.

import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/digest.ts'
import { type RefusalCode, ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import { findOrganization } from '../../store/accounts/organizations.ts'
import { findInboxesByAddress } from '../../store/mailbox/inboxes.ts'
import type { SendingCaller } from '../caller.ts'
import type { OwnMail, OwnSendResult } from '../own-mail.ts'
import type { Acceptance } from './accept-send.ts'

/** Refusals that stay: to the address, or because the key was used before. */
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
  /** Whether the limits of the inbox's organization count the mail. If not, whoever makes it bounds how much there is. */
  volume: 'counted' | 'uncounted'
}

/** Accepts the mail, or says why not; the same key is accepted once. `from` is the address of a living inbox. */
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
    // What is refused is an answer here, for nobody calls; all else is a fault, and rises.
    if (!(error instanceof ServiceError)) throw error
    return { status: lasting.includes(error.code) ? 'refused' : 'later', code: error.code }
  }
}
