// A recipient unsubscribes by the link of a mail: the address is suppressed for the organization that sent it.
import type { Clock } from '../../base/clock.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { readUnsubscribeToken, type UnsubscribeToken } from '../../mail/unsubscribe-token.ts'
import type { Db } from '../../postgres/db.ts'
import { suppressRecipients } from '../../store/sending/suppressions.ts'

/** The recipient whose link has this text. Null if the text is forged. */
export function readLink(secretBox: SecretBox, text: string): UnsubscribeToken | null {
  return readUnsubscribeToken(secretBox, text)
}

/** Suppresses the recipient and announces it. Does nothing if that was done, or if the submission is deleted. */
export async function unsubscribe(
  { db, clock }: { db: Db; clock: Clock },
  { submissionId, position }: UnsubscribeToken,
): Promise<void> {
  const recipient = { submissionId, position, reason: 'unsubscribe' as const }
  await db.transaction(async (tx) => void (await suppressRecipients(tx, [recipient], clock.now())))
}
