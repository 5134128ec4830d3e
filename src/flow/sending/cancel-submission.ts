// Cancels a submission's waiting deliveries. Those on the wire are not affected.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import { lockSubmissionDeliveries } from '../../store/sending/deliveries.ts'
import { endDeliveries } from '../../store/sending/delivery-ends.ts'
import { findSubmission, type SubmissionRow } from '../../store/sending/submissions.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireInbox, requireWholeOrganization } from '../caller.ts'

type Deps = { db: Db; clock: Clock }

/** Returns the submission afterwards. 409 if nothing waits and a delivery is on the wire. */
export async function cancelSubmission(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
): Promise<SubmissionRow> {
  const submission = await findSubmission(db, caller.organizationId, id)
  if (!submission) throw new ServiceError('not_found', 'There is no such submission.')
  if (submission.inboxId) requireInbox(caller, submission.inboxId)
  else requireWholeOrganization(caller)
  await db.transaction(async (tx) => {
    const deliveries = await lockSubmissionDeliveries(tx, submission.id)
    const waiting = deliveries.filter(({ waits }) => waits)
    if (waiting.length === 0 && deliveries.some(({ isOnWire }) => isOnWire))
      throw new ServiceError('delivery_in_progress')
    const end = { failureCode: 'cancelled', eventType: 'cancelled' as const, classification: null }
    const at = clock.now()
    await endDeliveries(tx, waiting, end, at)
    if (waiting.length > 0)
      await recordAction(tx, caller.organizationId, actorOf(caller), {
        action: 'submission.cancelled',
        subject: submission.id,
        detail: { recipients: waiting.length },
        at,
      })
  })
  return (await findSubmission(db, caller.organizationId, id)) ?? submission
}
