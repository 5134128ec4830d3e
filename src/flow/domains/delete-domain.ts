// Deletes a customer's domain: its keys erased, what waits to be sent from it cancelled, the name free for others.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { DomainId, OrganizationId, SubmissionId } from '../../base/ids.ts'
import type { Db } from '../../postgres/db.ts'
import { lockOrganization } from '../../store/accounts/organizations.ts'
import { findWaitingOfDomain } from '../../store/domains/domain-use.ts'
import { deleteDomainRow, findDomain, lockDomain } from '../../store/domains/domains.ts'
import { countInboxes } from '../../store/mailbox/inboxes.ts'
import { type DeliveryKey, endDeliveries } from '../../store/sending/deliveries.ts'
import { actorOf, recordDeed } from '../audit.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'

type Deps = { db: Db; clock: Clock }

/** Deleting what does not exist is no fault; 409 while inboxes are on the domain. */
export async function deleteDomain({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  const { organizationId } = caller
  if (!(await findDomain(db, organizationId, id))) return
  requireWholeOrganization(caller)
  const gone = await db.transaction(async (tx) => {
    // Whoever opens an inbox holds this lock as well, so none is opened beside the deletion.
    await lockOrganization(tx, organizationId)
    const row = await lockDomain(tx, organizationId, id)
    if (!row) return null
    const { onDomain } = await countInboxes(tx, organizationId, row.id)
    if (onDomain > 0)
      throw new ServiceError(
        'domain_in_use',
        `There are inboxes on ${row.name} (${onDomain}). Delete them first.`,
      )
    await deleteDomainRow(tx, row.id)
    const deed = { action: 'domain.deleted', subject: row.name, at: clock.now() } as const
    await recordDeed(tx, organizationId, actorOf(caller), deed)
    return { id: row.id, organizationId }
  })
  if (gone) await cancelWaiting({ db, clock }, gone)
}

const chunk = 500

/**
 * Chunk by chunk, each committed by itself: a transaction over all of a large queue would hold up every reader of the
 * outbox. What a crash leaves here is cancelled when its turn comes, like what was accepted at this moment.
 */
async function cancelWaiting(
  { db, clock }: Deps,
  domain: { id: DomainId; organizationId: OrganizationId },
): Promise<void> {
  const end = { failureCode: 'cancelled', eventType: 'cancelled', classification: null } as const
  for (let from: SubmissionId | null = null; ; ) {
    const waiting: DeliveryKey[] = await findWaitingOfDomain(db, domain, from, chunk)
    // Fewer end than were found when the engine has taken some onto the wire meanwhile; those it ends itself.
    await endDeliveries(db.writer, waiting, end, clock.now())
    if (waiting.length < chunk) return
    from = waiting.at(-1)!.submissionId
  }
}
