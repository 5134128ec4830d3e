// Whether a key may send from here, and whether the sender's domain may be sent from.
import type { InboxId } from '../../base/ids.ts'
import { upon } from '../../base/upon.ts'
import type { Caller } from '../caller.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import type { Sender } from './compile-send.ts'
import type { Refusal } from './send-draft.ts'

interface Sending {
  begins: 'conversation' | 'nothing'
  drafted: Refusal | null
  /** Whether it is the managed domain. */
  isLocal(domain: string): boolean
}

/** What a send is refused with: by its key, by its sender's domain, or as its draft was (`drafted`). */
export function judgeSender(
  domains: ProvedDomains,
  caller: Caller,
  sender: Sender,
  { begins, drafted, isLocal }: Sending,
): Refusal | null | Promise<Refusal | null> {
  if (!mayUseInbox(caller, sender.id)) return { code: 'inbox_not_allowed' }
  if (begins === 'conversation' && caller.sendMode === 'reply_only') return { code: 'send_mode_reply_only' }
  const isManaged = sender.id !== null && sender.domainId === null
  // A policy of the deployment, whoever the sender is.
  if (drafted?.code === 'marketing_not_available') return drafted
  if (isManaged) return isLocal(sender.domain) ? drafted : notReceivedFor(sender)
  // Without an inbox the sender has a domain only where it may be sent from; asked twice, the answers could differ.
  const maySend: { id: string } | string | null | Promise<{ id: string } | null> =
    sender.id === null ? sender.domainId : domains.findSending(caller.organizationId, sender.domain)
  return upon(maySend, (domain) => (domain ? drafted : notProved(sender)))
}

/** On a managed domain that the deployment had before: answers would not come here, and its keys sign no longer. */
function notReceivedFor({ domain }: Sender): Refusal {
  return {
    code: 'sender_not_allowed',
    detail: `This deployment does not receive mail for ${domain} any more.`,
  }
}

function notProved({ id, domain }: Sender): Refusal {
  return {
    code: 'sender_not_allowed',
    detail: `The domain of the sender, ${domain}, is not proved for sending: verify it${id === null ? ', or send from an inbox' : ''}.`,
  }
}

/** A key that is restricted to inboxes sends from no others, and never without one. */
function mayUseInbox({ inboxIds }: Caller, id: InboxId | null): boolean {
  return !inboxIds || (id !== null && inboxIds.includes(id))
}
