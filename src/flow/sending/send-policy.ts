// What refuses a send whatever the database holds: the key's restrictions, the sender's domain, the organization's limits.
import { ServiceError } from '../../base/errors.ts'
import type { SendOperation } from '../../store/sending/submissions.ts'
import type { SendingCaller } from '../caller.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import { contentBytes, type Recipient, type SendBody, type SendDraft, type Sender } from './send-draft.ts'

interface SendPolicy {
  domains: ProvedDomains
  /** Whether it is the managed domain. */
  isLocal(domain: string): boolean
}

/**
 * Refuses a key that may not send from the inbox (null: without an inbox), or that may only reply. It is asked before an
 * earlier result is looked up: a replay shows a key nothing that the key may not send itself.
 */
export function requireSendingKey(
  { inboxIds, sendMode }: SendingCaller,
  operation: SendOperation,
  inboxId: string | null,
): void {
  if (inboxIds && !inboxIds.some((id) => id === inboxId)) throw new ServiceError('inbox_not_allowed')
  if (operation !== 'reply' && sendMode === 'reply_only') throw new ServiceError('send_mode_reply_only')
}

/** Throws the refusal of what a key that may send there may not send. */
export async function requireSendable(
  policy: SendPolicy,
  caller: SendingCaller,
  { sender, recipients }: SendDraft,
  body: SendBody,
): Promise<void> {
  // A policy of the deployment, whoever the sender is.
  if (body.purpose === 'marketing') throw new ServiceError('marketing_not_available')
  await requireSender(policy, caller, sender)
  requireRecipients(caller, recipients)
  requireSize(caller, contentBytes(body))
  if (recipients.length > 0) return
  throw new ServiceError(
    'invalid_request',
    '/targetMessageId must be a message that has an address to reply to',
  )
}

async function requireSender(
  { domains, isLocal }: SendPolicy,
  caller: SendingCaller,
  sender: Sender,
): Promise<void> {
  const { id, domain, domainId } = sender
  if (id !== null && domainId === null) {
    if (isLocal(domain)) return
    // On a managed domain that the deployment had before: answers would not come here, and its keys sign no longer.
    throw new ServiceError(
      'sender_not_allowed',
      `This deployment does not receive mail for ${domain} any more.`,
    )
  }
  // Without an inbox the sender has a domain only where it may be sent from; asked twice, the answers could differ.
  const isProved = id === null ? domainId !== null : await domains.findSending(caller.organizationId, domain)
  if (isProved) return
  throw new ServiceError(
    'sender_not_allowed',
    `The domain of the sender, ${domain}, is not proved for sending: verify it${id === null ? ', or send from an inbox' : ''}.`,
  )
}

function requireRecipients(
  { allowedRecipientDomains, limits }: SendingCaller,
  recipients: Recipient[],
): void {
  const stranger =
    allowedRecipientDomains && recipients.find(({ domain }) => !allowedRecipientDomains.includes(domain))
  if (stranger)
    throw new ServiceError('recipient_domain_not_allowed', `The API key may not send to ${stranger.domain}.`)
  const { recipientsPerMessage } = limits
  if (recipients.length > recipientsPerMessage)
    throw new ServiceError(
      'too_many_recipients',
      `The message has ${recipients.length} recipients; at most ${recipientsPerMessage} are allowed.`,
    )
}

/** Asked of what is given, and again with the text that is made of its HTML. */
export function requireSize({ limits }: SendingCaller, bytes: number): void {
  if (bytes <= limits.messageContentBytes) return
  throw new ServiceError(
    'message_too_large',
    `The message has ${bytes} bytes of content; at most ${limits.messageContentBytes} are allowed.`,
  )
}
