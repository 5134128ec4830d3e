// Refusals of a send before its commit: the key's restrictions, the sender's domain, the organization's limits.
import { ServiceError } from '../../base/errors.ts'
import type { SendOperation } from '../../store/sending/submissions.ts'
import type { SendingCaller } from '../caller.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import { contentBytes, type Recipient, type SendBody, type SendDraft, type Sender } from './send-draft.ts'

interface SendPolicy {
  domains: ProvedDomains
  /** Whether the domain is the managed domain. */
  isLocal(domain: string): boolean
}

/**
 * Refuses a key that may not send from the inbox (null: without an inbox), or that may only reply. Called before the look-up
 * of an earlier result, so that a replay reveals only what the key may send itself.
 */
export function requireSendingKey(
  { inboxIds, sendMode }: SendingCaller,
  operation: SendOperation,
  inboxId: string | null,
): void {
  if (inboxIds && !inboxIds.some((id) => id === inboxId)) throw new ServiceError('inbox_not_allowed')
  if (operation !== 'reply' && sendMode === 'reply_only') throw new ServiceError('send_mode_reply_only')
}

/** Checks purpose, sender's domain, recipients and size, after `requireSendingKey`. Throws the refusal. */
export async function requireSendable(
  policy: SendPolicy,
  caller: SendingCaller,
  { operation, sender, recipients }: SendDraft,
  body: SendBody,
): Promise<void> {
  // Marketing mail is refused from every sender.
  if (body.purpose === 'marketing') throw new ServiceError('marketing_not_available')
  await requireSender(policy, caller, sender)
  requireRecipients(caller, operation, recipients)
  requireSize(caller, contentBytes(body))
  if (recipients.length > 0) return
  throw new ServiceError('invalid_request', '/targetMessageId must be a message with an address to reply to')
}

async function requireSender(
  { domains, isLocal }: SendPolicy,
  caller: SendingCaller,
  sender: Sender,
): Promise<void> {
  const { id, domain, domainId } = sender
  if (id !== null && domainId === null) {
    if (isLocal(domain)) return
    // The sender is on a former managed domain. Replies would not reach us, and we can no longer sign for the domain.
    throw new ServiceError(
      'sender_not_allowed',
      `This deployment no longer receives mail for ${domain}. Send from another inbox.`,
    )
  }
  // Without an inbox, `domainId` is set only if sending is allowed. A second check could give another answer.
  const isProved = id === null ? domainId !== null : await domains.findSending(caller.organizationId, domain)
  if (isProved) return
  throw new ServiceError(
    'sender_not_allowed',
    `The sender's domain ${domain} is not verified for sending. Verify it${id === null ? ', or send from an inbox' : ''}.`,
  )
}

export function requireRecipients(
  { allowedRecipientDomains, limits }: SendingCaller,
  operation: SendOperation,
  recipients: Recipient[],
): void {
  const stranger =
    allowedRecipientDomains && recipients.find(({ domain }) => !allowedRecipientDomains.includes(domain))
  if (stranger) {
    // Security: a stranger chooses the recipients of a reply by Reply-To, and a domain can hold any words.
    const name = operation === 'reply' ? 'a recipient of this reply' : stranger.domain
    throw new ServiceError(
      'recipient_domain_not_allowed',
      `The API key cannot send to ${name}. allowedRecipientDomains (GET /v1/me) lists the domains it can send to.`,
    )
  }
  const { recipientsPerMessage } = limits
  if (recipients.length > recipientsPerMessage)
    throw new ServiceError(
      'too_many_recipients',
      `The message has ${recipients.length} recipients. recipientsPerMessage allows ${recipientsPerMessage}.`,
    )
}

/** Checked for the given content, and again with the text made from its HTML. */
export function requireSize({ limits }: SendingCaller, bytes: number): void {
  if (bytes <= limits.messageContentBytes) return
  throw new ServiceError(
    'message_too_large',
    `The message has ${bytes} bytes of content. messageContentBytes allows ${limits.messageContentBytes}.`,
  )
}
