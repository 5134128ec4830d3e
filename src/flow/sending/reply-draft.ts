// Derives a reply's recipients, subject and references from its target.
import { type Mailbox, parseEmail, sameAddressKey } from '../../mail/address.ts'
import { oneLine } from '../../mail/read/charset.ts'
import type { MessageRow } from '../../store/mailbox/messages.ts'

const maxReferences = 100
const maxSubjectLength = 998

/**
 * Returns the recipients of a reply to `target`. If the target is inbound: its Reply-To if mail can be sent there, else its
 * From. If it is outbound: its To. `all` adds its Cc and, if it is inbound, its To, but never the address `own`.
 */
export function replyRecipients(
  target: MessageRow,
  own: string,
  all: 'sender' | 'all',
): { to: Mailbox[]; cc: Mailbox[] } {
  const { to, cc = [], replyTo } = target.recipients
  const asked = replyTo && isSendable(replyTo) ? replyTo : target.sender
  const answered = target.direction === 'outbound' ? to : [asked]
  if (all === 'sender') return { to: answered.filter(isSendable), cc: [] }
  const ownKey = sameAddressKey(own)
  const others = (target.direction === 'outbound' ? cc : [...to, ...cc]).filter(
    (mailbox) => isSendable(mailbox) && sameAddressKey(mailbox.email) !== ownKey,
  )
  return { to: answered.filter(isSendable), cc: others }
}

function isSendable({ email }: Mailbox): boolean {
  return parseEmail(email) !== null
}

/** The thread's subject with one `Re: `, always in one line: no line break may reach the header. */
export function replySubject(threadSubject: string): string {
  const bare = oneLine(threadSubject).replace(/^(?:\s{0,10}re\s{0,10}:){1,50}\s{0,10}/i, '')
  return Array.from(`Re: ${bare}`).slice(0, maxSubjectLength).join('')
}

/** RFC 5322 3.6.4: the parent's references and its own id. If there are too many: the first and the latest. */
export function replyReferences(target: MessageRow): string[] {
  const chain =
    target.referenceIds.length > 0 ? target.referenceIds : target.inReplyTo ? [target.inReplyTo] : []
  const references = [...chain.filter((id) => id !== target.internetMessageId), target.internetMessageId]
  return references.length <= maxReferences
    ? references
    : [references[0]!, ...references.slice(1 - maxReferences)]
}
