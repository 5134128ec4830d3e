// Every lifecycle: its states, its legal moves and its final states. All other code asks here.
import type { DomainState, Standing } from '../store/domains/domains.ts'
import type { AttachmentEntry } from '../store/mailbox/messages.ts'
import type { DeliveryStatus, SubmissionStatus } from '../store/status.ts'

/**
 * A recipient of a submission. `pending` has not been tried. `deferred` was tried and waits for its next attempt. A DSN can
 * still turn `delivered` into `bounced`. `bounced`, `failed` and `suppressed` are final.
 */
export const recipientMoves: Readonly<Record<DeliveryStatus, readonly DeliveryStatus[]>> = {
  pending: ['deferred', 'delivered', 'bounced', 'failed', 'suppressed'],
  deferred: ['deferred', 'delivered', 'bounced', 'failed', 'suppressed'],
  delivered: ['bounced'],
  bounced: [],
  failed: [],
  suppressed: [],
}

/** An outbound message's `delivery.status`, from its submission's. */
export function messageStatusOf(
  status: SubmissionStatus,
): 'submitted' | Exclude<SubmissionStatus, 'pending'> {
  return status === 'pending' ? 'submitted' : status
}

/** An attachment: clamd judges it once. `failed` means that clamd can never scan it as a whole. */
export const scanMoves: Readonly<
  Record<AttachmentEntry['scanState'], readonly AttachmentEntry['scanState'][]>
> = {
  unscanned: ['clean', 'infected', 'failed'],
  clean: [],
  infected: [],
  failed: [],
}

/**
 * Ownership of a domain, and its capabilities `outbound` and `inbound`. `pending` was never verified. `failed` was verified
 * and is lost now. Only `nextStanding` moves a state from verified to failed.
 */
export const domainMoves: Readonly<Record<DomainState, readonly DomainState[]>> = {
  pending: ['verified'],
  verified: ['failed'],
  failed: ['verified'],
}

const failuresToLose = 3
const timeToLoseMs = 72 * 3_600_000

/** The state of ownership or a capability after a check. It is lost only after three failed checks over 72 h. */
export function nextStanding(
  state: DomainState,
  standing: Standing,
  { result, reasons }: { result: 'holds' | 'broken' | 'unknown'; reasons: string[] },
  at: Date,
): { state: DomainState; standing: Standing } {
  const checked = { ...standing, reasons, checkedAt: at.toISOString() }
  if (result === 'unknown') return { state, standing: checked }
  if (result === 'holds')
    return { state: 'verified', standing: { ...checked, failures: 0, failingSince: null } }
  if (state !== 'verified') return { state, standing: checked }
  const failures = standing.failures + 1
  const failingSince = standing.failingSince ?? at.toISOString()
  const isLost = failures >= failuresToLose && at.getTime() - Date.parse(failingSince) >= timeToLoseMs
  if (isLost) return { state: 'failed', standing: { ...checked, failures: 0, failingSince: null } }
  return { state, standing: { ...checked, failures, failingSince } }
}
