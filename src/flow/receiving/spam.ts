// Turns Rspamd's findings about a received mail into a reply and a record for the message.
import type { SpamFindings } from '../../scan/rspamd-answer.ts'
import { type Reply, reply } from '../../smtp/reply.ts'
import type { SpamRecord } from '../../store/mailbox/messages.ts'

// RFC 3463 3.8: X.7.1, delivery not authorized, message refused.
const refused = reply(550, '5.7.1', 'Message rejected as spam')
const deferred = reply(451, '4.7.1', 'Message temporarily deferred, try again later')

const replies = new Map<string, Reply>([
  ['reject', refused],
  ['greylist', deferred],
  ['soft reject', deferred],
])

/** The final reply if Rspamd's action refuses or defers the mail. Null if it is accepted, also for unknown actions. */
export function spamReply({ action }: Pick<SpamFindings, 'action'>): Reply | null {
  return replies.get(action) ?? null
}

/** The part of the findings that the message keeps. */
export function spamRecord({ score, action, symbols }: SpamFindings): SpamRecord {
  return { score, action, symbols }
}
