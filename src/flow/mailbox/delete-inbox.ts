// Deletes an inbox: hides it from all reads at once, cancels its waiting deliveries, and purges its mail later.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { entombInbox, findInbox, lockInbox } from '../../store/mailbox/inboxes.ts'
import { deleteUnusedRaws } from '../../store/mailbox/raws.ts'
import { purgeMessages } from '../../store/mailbox/removal.ts'
import { lockInboxDeliveries } from '../../store/sending/deliveries.ts'
import { endDeliveries } from '../../store/sending/delivery-ends.ts'
import { eraseResults } from '../../store/sending/submissions.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireInbox } from '../caller.ts'
import { deleteBlobs } from '../delete-blobs.ts'

type Deps = { db: Db; clock: Clock }

/** Deleting an unknown inbox is no error. 409 while one of its messages is on the wire. */
export async function deleteInbox({ db, clock }: Deps, caller: Caller, inboxId: string): Promise<void> {
  const inbox = await findInbox(db, caller.organizationId, inboxId)
  if (inbox?.status !== 'active') return
  requireInbox(caller, inbox.id)
  await db.transaction(async (tx) => {
    if (!(await lockInbox(tx, caller.organizationId, inboxId))) return
    const at = clock.now()
    const deliveries = await lockInboxDeliveries(tx, inbox.id)
    if (deliveries.some(({ isOnWire }) => isOnWire)) throw new ServiceError('delivery_in_progress')
    const end = { failureCode: 'inbox_deleted', eventType: 'cancelled' as const, classification: null }
    await endDeliveries(tx, deliveries, end, at)
    await entombInbox(tx, inbox.id, at)
    const entry = { action: 'inbox.deleted', subject: `${inbox.localPart}@${inbox.domain}`, at } as const
    await recordAction(tx, caller.organizationId, actorOf(caller), entry)
  })
}

/** Purges a chunk of a deleted inbox's data. False if nothing is left to purge. */
export async function purgeDeleted({ db, blobs }: { db: Db; blobs: Blobs }, limit: number): Promise<boolean> {
  const unused = await db.transaction(async (tx) => {
    const purged = await purgeMessages(tx, limit)
    if (!purged) return null
    await eraseResults(tx, purged.submissionIds)
    return await deleteUnusedRaws(tx, purged.rawIds)
  })
  await deleteBlobs({ db, blobs }, unused ?? [])
  return unused !== null
}
