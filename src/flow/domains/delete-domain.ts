// Deletes a customer's domain: erases its keys, cancels its waiting mail, and frees the name for others.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { DomainId, OrganizationId, SubmissionId } from '../../base/ids.ts'
import type { Db } from '../../postgres/db.ts'
import { lockOrganization } from '../../store/accounts/organizations.ts'
import { findWaitingOfDomain } from '../../store/domains/domain-use.ts'
import { deleteDomainRow, findDomain, lockDomain } from '../../store/domains/domains.ts'
import { countInboxes } from '../../store/mailbox/inboxes.ts'
import type { DeliveryKey } from '../../store/sending/deliveries.ts'
import { endDeliveries } from '../../store/sending/delivery-ends.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'

type Deps = { db: Db; clock: Clock }

/** Deleting an unknown domain is no error. 409 while inboxes are on the domain. */
export async function deleteDomain({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  const { organizationId } = caller
  if (!(await findDomain(db, organizationId, id))) return
  requireWholeOrganization(caller)
  const gone = await db.transaction(async (tx) => {
    // Opening an inbox takes this lock too, so no inbox is opened during the deletion.
    await lockOrganization(tx, organizationId)
    const row = await lockDomain(tx, organizationId, id)
    if (!row) return null
    const { onDomain } = await countInboxes(tx, organizationId, row.id)
    if (onDomain > 0)
      throw new ServiceError(
        'domain_in_use',
        `${row.name} still has inboxes (${onDomain}). Delete them first.`,
      )
    await deleteDomainRow(tx, row.id)
    const entry = { action: 'domain.deleted', subject: row.name, at: clock.now() } as const
    await recordAction(tx, organizationId, actorOf(caller), entry)
    return { id: row.id, organizationId }
  })
  if (gone) await cancelWaiting({ db, clock }, gone)
}

const chunk = 500

/**
 * Commits each chunk separately: one transaction over a large queue would delay every reader of the outbox. Deliveries left
 * by a crash, or accepted at this moment, are cancelled when they are due.
 */
async function cancelWaiting(
  { db, clock }: Deps,
  domain: { id: DomainId; organizationId: OrganizationId },
): Promise<void> {
  const end = { failureCode: 'cancelled', eventType: 'cancelled', classification: null } as const
  for (let from: SubmissionId | null = null; ; ) {
    const waiting: DeliveryKey[] = await findWaitingOfDomain(db, domain, from, chunk)
    // Fewer may end than were found, if the engine has put some on the wire meanwhile. It ends those itself.
    await endDeliveries(db.writer, waiting, end, clock.now())
    if (waiting.length < chunk) return
    from = waiting.at(-1)!.submissionId
  }
}
