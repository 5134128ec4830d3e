// Ends deliveries without an attempt: expired, cancelled, suppressed, or to a domain that takes no mail.
import { newUuid } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Writer } from '../../postgres/db.ts'
import type { DeliveryKey } from './deliveries.ts'

/** The reason why deliveries end without an attempt. */
export interface DeliveryEnd {
  failureCode: string
  eventType: 'failed' | 'cancelled' | 'suppressed'
  classification: string | null
  /** Why, in words and as a status of RFC 3463. Absent: the last reply of each recipient remains. */
  response?: string
  enhancedStatus?: string
  /** Ends deliveries that were just claimed under this epoch, which then count no attempt. Absent: ends waiting ones. */
  epoch?: number
}

/** Ends deliveries, with one event each; returns how many. Deliveries on the wire are not changed. */
export async function endDeliveries(
  db: Writer,
  ended: DeliveryKey[],
  { failureCode, eventType, classification, response, enhancedStatus, epoch }: DeliveryEnd,
  at: Date,
): Promise<number> {
  if (ended.length === 0) return 0
  const rows = ended.map(({ submissionId, position }) => ({
    submission: submissionId,
    position,
    id: newUuid(),
    response,
    enhanced: enhancedStatus,
  }))
  const named = new Arguments({
    ended: JSON.stringify(rows),
    lease_epoch: epoch ?? null,
    event_type: eventType,
    code: failureCode,
    class: classification,
    at,
  })
  const [row] = await db.query<{ count: number }>(
    `select end_deliveries(${named.of()}) as count`,
    named.values,
  )
  return row!.count
}
