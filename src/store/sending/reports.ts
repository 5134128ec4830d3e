// The deliveries that reports are about, and the facts that reports record.
import { type MessageId, newUuid, type OrganizationId } from '../../base/ids.ts'
import type { Tx } from '../../postgres/db.ts'
import type { DeliveryStatus } from '../status.ts'
import type { DeliveryKey } from './deliveries.ts'

/** A delivery that a report may be about. */
export interface ReportedDelivery extends DeliveryKey {
  organizationId: OrganizationId
  messageId: MessageId | null
  email: string
  addressKey: string
  status: DeliveryStatus
  isOnWire: boolean
  /** Whether a report of delay was already published. */
  isDelayPublished: boolean
}

/** Locks the deliveries of the keys, in order. */
export async function lockReportedDeliveries(tx: Tx, keys: DeliveryKey[]): Promise<ReportedDelivery[]> {
  if (keys.length === 0) return []
  return await tx.query<ReportedDelivery>(
    `select submission_id as "submissionId", ordinal as position, organization_id as "organizationId",
      message_id as "messageId", email, address_key as "addressKey", status, is_on_wire as "isOnWire",
      is_delay_published as "isDelayPublished"
    from lock_reported_deliveries($1)`,
    [JSON.stringify(keys.map(({ submissionId, position }) => ({ submission: submissionId, position })))],
  )
}

/** An event from a report. `bounced` also ends the delivery, whose row the caller has locked. */
export interface ReportFact extends DeliveryKey {
  type: 'bounced' | 'deferred' | 'complained'
  recipient: string
  response: string | null
  enhancedStatus: string | null
  classification: string | null
  failureCode: string | null
}

export async function recordReports(tx: Tx, facts: ReportFact[], at: Date): Promise<void> {
  if (facts.length === 0) return
  const rows = facts.map(({ submissionId, enhancedStatus, failureCode, ...fact }) => ({
    submission: submissionId,
    id: newUuid(),
    at,
    enhanced: enhancedStatus,
    failure_code: failureCode,
    ...fact,
  }))
  await tx.query('select record_reports($1, $2)', [JSON.stringify(rows), at])
}
