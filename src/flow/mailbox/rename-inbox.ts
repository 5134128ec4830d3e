// Renames an inbox: changes the display name in mail sent from now on.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import { type InboxRow, lockInbox, updateDisplayName } from '../../store/mailbox/inboxes.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireInbox } from '../caller.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { requireDisplayName } from '../require-name.ts'

/** When it returns, every node sends under the new name. */
export async function renameInbox(
  { db, clock }: { db: Db; clock: Clock },
  caller: Caller,
  inboxId: string,
  givenName: string,
): Promise<InboxRow> {
  const displayName = requireDisplayName(givenName)
  const renamed = await db.transaction(async (tx) => {
    const inbox = await lockInbox(tx, caller.organizationId, inboxId)
    if (!inbox) throw new ServiceError('not_found', 'There is no such inbox.')
    requireInbox(caller, inbox.id)
    const at = clock.now()
    await updateDisplayName(tx, inbox.id, displayName, at)
    await recordAction(tx, caller.organizationId, actorOf(caller), {
      action: 'inbox.renamed',
      subject: `${inbox.localPart}@${inbox.domain}`,
      detail: { from: inbox.displayName, to: displayName },
      at,
    })
    return { ...inbox, displayName, updatedAt: at }
  })
  await untilKnownEverywhere()
  return renamed
}
