// A recipient unsubscribes by the link of a mail: the address is suppressed for the organization that sent it.
import { Batch } from '../../base/batch.ts'
import type { Clock } from '../../base/clock.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { readUnsubscribeToken, type UnsubscribeToken } from '../../mail/unsubscribe-token.ts'
import type { Db } from '../../postgres/db.ts'
import { suppressRecipients } from '../../store/sending/suppressions.ts'

/** The recipient whose link has this text. Null if the text is forged. */
export function readLink(secretBox: SecretBox, text: string): UnsubscribeToken | null {
  return readUnsubscribeToken(secretBox, text)
}

/**
 * Takes recipients to suppress, and announces each. Does nothing for one that was suppressed before, or whose submission is
 * deleted. Anyone with a link may send it without end, so all requests together have one connection to the database.
 */
export function createUnsubscribing({
  db,
  clock,
}: {
  db: Db
  clock: Clock
}): Batch<UnsubscribeToken, undefined> {
  return new Batch({
    name: 'unsubscribe',
    maxInFlight: 1,
    flush: async (tokens) => {
      const distinct = new Map(tokens.map((token) => [`${token.submissionId} ${token.position}`, token]))
      const recipients = [...distinct.values()].map(({ submissionId, position }) => {
        return { submissionId, position, reason: 'unsubscribe' as const }
      })
      await db.transaction(async (tx) => void (await suppressRecipients(tx, recipients, clock.now())))
      return tokens.map(() => undefined)
    },
  })
}
