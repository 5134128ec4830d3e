// Refuses the first message to an address if the key leaves that to a person.
import { domainToUnicode } from 'node:url'
import { ServiceError } from '../../base/errors.ts'
import type { Queryable } from '../../postgres/db.ts'
import { findStranger } from '../../store/mailbox/correspondents.ts'
import type { SendingCaller } from '../caller.ts'
import type { SendDraft } from './send-draft.ts'

/**
 * Security: a model that a mail persuades to write elsewhere reaches only addresses that the inbox knows. Mail without an
 * inbox knows none. If no DMARC policy protects a domain, a stranger makes its addresses known by writing in their name.
 */
export async function requireKnownRecipients(
  db: Queryable,
  { confirmNewRecipients, organizationId }: SendingCaller,
  { operation, sender, recipients }: Pick<SendDraft, 'operation' | 'sender' | 'recipients'>,
): Promise<void> {
  if (!confirmNewRecipients) return
  const addressed = recipients.map(({ key, email, domain }) => {
    const localPart = email.slice(0, email.lastIndexOf('@'))
    return { key, unicode: `${localPart}@${domainToUnicode(domain)}` }
  })
  const unknown =
    sender.id === null
      ? recipients[0]!.key
      : await findStranger(db, { organizationId, inboxId: sender.id }, addressed)
  if (unknown === null) return
  // Security: a stranger chooses the recipients of a reply by Reply-To, and an address can hold any text.
  const name =
    operation === 'reply' ? 'A recipient of this reply' : recipients.find(({ key }) => key === unknown)!.email
  throw new ServiceError(
    'recipient_not_confirmed',
    `${name} has neither written to this inbox nor got mail from it, and this API key must not send the first message to an address. Ask a person to send it, in the dashboard or with another key.`,
  )
}
