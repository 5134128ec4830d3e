// Every lifecycle: the values it takes, the moves that are legal, and where it ends. Everything else asks here.
import type { SubmissionId } from '../base/ids.ts'
import type { DeliveryStatus, SubmissionStatus } from '../store/status.ts'

/**
 * A recipient of a submission. `pending` has not been tried; `deferred` was, and waits for its next attempt. A DSN can
 * still turn `delivered` into `bounced`; `bounced`, `failed` and `suppressed` are final.
 */
export const recipientMoves: Readonly<Record<DeliveryStatus, readonly DeliveryStatus[]>> = {
  pending: ['deferred', 'delivered', 'bounced', 'failed', 'suppressed'],
  deferred: ['deferred', 'delivered', 'bounced', 'failed', 'suppressed'],
  delivered: ['bounced'],
  bounced: [],
  failed: [],
  suppressed: [],
}

/** What a submission's recipients make of it; `settle_submissions` in the store is this, in SQL, and is tested against it. */
export function submissionStatusOf(recipients: readonly DeliveryStatus[]): SubmissionStatus {
  if (recipients.some((status) => status === 'pending' || status === 'deferred')) return 'pending'
  const delivered = recipients.filter((status) => status === 'delivered').length
  if (delivered === recipients.length) return 'delivered'
  return delivered > 0 ? 'partially_delivered' : 'failed'
}

/** An outbound message's `delivery.status`, from its submission's. */
export function messageStatusOf(
  status: SubmissionStatus,
): 'submitted' | Exclude<SubmissionStatus, 'pending'> {
  return status === 'pending' ? 'submitted' : status
}

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The name under which the delivery engine knows a submission, in `Received` lines and logs: 12 characters. */
export function queueIdOf(submissionId: SubmissionId): string {
  const bits = BigInt(`0x${submissionId.replaceAll('-', '').slice(-15)}`)
  return Array.from({ length: 12 }, (_, i) => base32[Number((bits >> BigInt(55 - 5 * i)) & 31n)]).join('')
}
