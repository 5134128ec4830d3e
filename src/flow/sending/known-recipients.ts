// Refuses the first message to an address if the key leaves that to a person.
import { ServiceError } from '../../base/errors.ts'
import type { Queryable } from '../../postgres/db.ts'
import { findCorrespondents } from '../../store/mailbox/correspondents.ts'
import type { SendingCaller } from '../caller.ts'
import type { SendDraft } from './send-draft.ts'

/**
 * Security: a model that a mail persuades to write elsewhere reaches only addresses that the inbox knows. Mail without an
 * inbox knows none. A From address is only a claim, so a stranger can make an address known by writing in its name.
 */
export async function requireKnownRecipients(
  db: Queryable,
  { confirmNewRecipients, organizationId }: SendingCaller,
  { operation, sender, recipients }: Pick<SendDraft, 'operation' | 'sender' | 'recipients'>,
): Promise<void> {
  if (!confirmNewRecipients) return
  const keys = recipients.map(({ key }) => key)
  const known =
    sender.id === null
      ? new Set()
      : await findCorrespondents(db, { organizationId, inboxId: sender.id }, keys)
  const unknown = recipients.find(({ key }) => !known.has(key))
  if (!unknown) return
  // Security: a stranger chooses the recipients of a reply by Reply-To, and an address can hold any text.
  const name = operation === 'reply' ? 'A recipient of this reply' : unknown.email
  throw new ServiceError(
    'recipient_not_confirmed',
    `${name} has neither written to this inbox nor got mail from it, and this API key must not send the first message to an address. Ask a person to send it, in the dashboard or with another key.`,
  )
}
