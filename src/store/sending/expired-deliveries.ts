// Waiting deliveries past their lifetime.
import type { Queryable } from '../../postgres/db.ts'
import type { DeliveryKey } from './deliveries.ts'

const waiting = `claim_epoch is null and status in ('pending', 'deferred')`
/** Holds if `findExpired` finds a delivery. */
export const expiryDue = `exists (select from delivery where expires_at <= asked.at and ${waiting})`

/** `lacksTls`: no server answered for the recipient, and its queue is blocked because no server offers the required TLS. */
type ExpiredDelivery = DeliveryKey & { lacksTls: boolean }

/** Finds waiting deliveries past their lifetime. */
export async function findExpired(db: Queryable, at: Date, limit: number): Promise<ExpiredDelivery[]> {
  return await db.query<ExpiredDelivery>(
    `select submission_id as "submissionId", position, d.response is null and exists (select from route r
        where r.key = d.route and r.failures > 0 and r.last_fault_class = 'tls') as "lacksTls"
    from delivery d where expires_at <= $1 and ${waiting} order by expires_at limit $2`,
    [at, limit],
  )
}
