// What Rspamd's findings do to a received mail: the reply where it wants none of it, and what is kept with the message.
import type { SpamFindings } from '../../scan/rspamd-answer.ts'
import { type Reply, reply } from '../../smtp/reply.ts'
import type { SpamRecord } from '../../store/mailbox/messages.ts'

// RFC 3463 3.8: X.7.1, delivery not authorized, message refused.
const refused = reply(550, '5.7.1', 'This message looks like spam, and is refused')
const deferred = reply(451, '4.7.1', 'Not now, try again later')

const replies = new Map<string, Reply>([
  ['reject', refused],
  ['greylist', deferred],
  ['soft reject', deferred],
])

/** The final reply where Rspamd's action refuses or defers the mail; null where it is taken, as with actions we do not know. */
export function spamReply({ action }: Pick<SpamFindings, 'action'>): Reply | null {
  return replies.get(action) ?? null
}

/** What the message keeps of the findings. */
export function spamRecord({ score, action, symbols }: SpamFindings): SpamRecord {
  return { score, action, symbols }
}
