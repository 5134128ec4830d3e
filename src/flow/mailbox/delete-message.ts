// Deletes a message with its content. Its submission stays, with recipients, states and events.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { lockInbox } from '../../store/mailbox/inboxes.ts'
import { deleteMessageRows, findMessage } from '../../store/mailbox/messages.ts'
import { deleteUnusedRaws } from '../../store/mailbox/raws.ts'
import { lockSubmissionDeliveries } from '../../store/sending/deliveries.ts'
import { endDeliveries } from '../../store/sending/delivery-ends.ts'
import { eraseResults } from '../../store/sending/submissions.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireInbox } from '../caller.ts'
import { deleteBlobs } from '../delete-blobs.ts'

type Deps = { db: Db; clock: Clock; blobs: Blobs }

/**
 * Deletes the message and cancels its waiting deliveries. Deleting an unknown one is no error. 409 while it is on the wire.
 */
export async function deleteMessage(
  { db, clock, blobs }: Deps,
  caller: Caller,
  messageId: string,
): Promise<void> {
  const message = await findMessage(db, caller.organizationId, messageId)
  if (!message) return
  requireInbox(caller, message.inboxId)
  const unused = await db.transaction(async (tx) => {
    if (!(await lockInbox(tx, caller.organizationId, message.inboxId))) return []
    if (message.submissionId) {
      const deliveries = await lockSubmissionDeliveries(tx, message.submissionId)
      if (deliveries.some(({ isOnWire }) => isOnWire)) throw new ServiceError('delivery_in_progress')
      const waiting = deliveries.filter(({ waits }) => waits)
      const end = { failureCode: 'cancelled', eventType: 'cancelled' as const, classification: null }
      await endDeliveries(tx, waiting, end, clock.now())
      await eraseResults(tx, [message.submissionId])
    }
    await deleteMessageRows(tx, [message], clock.now())
    const entry = {
      action: 'message.deleted',
      subject: message.id,
      detail: { inboxId: message.inboxId },
    } as const
    await recordAction(tx, caller.organizationId, actorOf(caller), { ...entry, at: clock.now() })
    return message.rawId ? await deleteUnusedRaws(tx, [message.rawId]) : []
  })
  await deleteBlobs({ db, blobs }, unused)
}
