// Moves what proved reports are about: recipients, events, complaints and suppressions, each once.

import { sameAddressKey } from '../mail/address.ts'
import type { RecipientReport } from '../mail/recipient-report.ts'
import type { DeliveryReport, FeedbackReport, Report } from '../mail/report.ts'
import { insertComplaint } from '../store/complaints.ts'
import type { Tx } from '../store/db.ts'
import { lockReported, type ReportedDelivery, type ReportFact, recordReports } from '../store/reports.ts'
import { type SuppressionReason, suppressRecipients } from '../store/suppressions.ts'
import { type ReturnPathToken, severalRecipients } from './return-path.ts'
import { recipientMoves } from './states.ts'
import { meaningOf, meaningOfFeedback } from './suppress.ts'

/** A report with the token that proves what it is about. */
export interface ProvedReport {
  id: string
  token: ReturnPathToken
  report: Report
  receivedAt: Date
}

/** What a batch of reports changes. */
interface Changes {
  facts: ReportFact[]
  suppressed: { delivery: ReportedDelivery; reason: SuppressionReason }[]
}

/**
 * Applies the reports, in their order; answers the ids of those that have to wait, for what they are about is on the
 * wire. A report that comes again changes nothing.
 */
export async function applyReports(
  tx: Tx,
  reports: ProvedReport[],
  at: Date,
): Promise<{ waiting: string[] }> {
  const places = reports.map(({ token: { submissionId, position } }) => ({
    submissionId,
    position: position === severalRecipients ? null : position,
  }))
  const bySubmission = Map.groupBy(await lockReported(tx, places), ({ submissionId }) => submissionId)
  const changes: Changes = { facts: [], suppressed: [] }
  const waiting: string[] = []
  for (const { id, token, report, receivedAt } of reports) {
    const deliveries = (bySubmission.get(token.submissionId) ?? []).filter(
      ({ position }) => token.position === severalRecipients || position === token.position,
    )
    if (report.kind === 'feedback') await complain(tx, deliveries, report, { receivedAt, at }, changes)
    else if (!bounce(deliveries, report, changes)) waiting.push(id)
  }
  await recordReports(tx, changes.facts, at)
  const suppressed = changes.suppressed.map(({ delivery, reason }) => ({ ...delivery, reason }))
  await suppressRecipients(tx, suppressed, at)
  return { waiting }
}

/** False where a delivery that the report is about is on the wire: nothing was changed. */
function bounce(deliveries: ReportedDelivery[], report: DeliveryReport, changes: Changes): boolean {
  const matched = matchRecipients(deliveries, report.recipients)
  if (matched.some(({ delivery }) => delivery.onWire)) return false
  for (const { delivery, recipient } of matched) {
    const meaning = meaningOf(recipient)
    if (!meaning) continue
    const { type, classification, failureCode, suppresses } = meaning
    const isNews = recipientMoves[delivery.status].includes('bounced')
    if (!isNews || (type === 'deferred' && delivery.isDelayTold)) continue
    if (type === 'bounced') delivery.status = 'bounced'
    else delivery.isDelayTold = true
    changes.facts.push({
      ...placeOf(delivery),
      type,
      recipient: delivery.email,
      response: recipient.text || `reported as ${recipient.action}`,
      enhancedStatus: recipient.enhanced,
      classification,
      failureCode,
    })
    if (suppresses) changes.suppressed.push({ delivery, reason: 'hard_bounce' })
  }
  return true
}

function placeOf({ submissionId, position }: ReportedDelivery) {
  return { submissionId, position }
}

/** Which recipient each part of the report is about. */
function matchRecipients(
  deliveries: ReportedDelivery[],
  recipients: RecipientReport[],
): { delivery: ReportedDelivery; recipient: RecipientReport }[] {
  const byKey = new Map(
    recipients.flatMap((recipient) =>
      recipient.addresses.map((address) => [sameAddressKey(address), recipient] as const),
    ),
  )
  const named = deliveries.flatMap((delivery) => {
    const recipient = byKey.get(delivery.addressKey)
    return recipient ? [{ delivery, recipient }] : []
  })
  const [only] = deliveries
  if (named.length > 0 || !only || deliveries.length > 1) return named
  // The return path was made for this recipient alone: the report names whom the mail was forwarded to, or nobody.
  const recipient = forwardedTo(recipients)
  return recipient ? [{ delivery: only, recipient }] : []
}

/** What was forwarded to several has failed only where all of them failed; the mildest failure counts. */
function forwardedTo(recipients: RecipientReport[]): RecipientReport | undefined {
  if (recipients.length === 1) return recipients[0]
  if (recipients.some(({ action }) => action !== 'failed')) return undefined
  return recipients.find((recipient) => !meaningOf(recipient)?.suppresses) ?? recipients[0]
}

async function complain(
  tx: Tx,
  deliveries: ReportedDelivery[],
  report: FeedbackReport,
  { receivedAt, at }: { receivedAt: Date; at: Date },
  changes: Changes,
): Promise<void> {
  const meaning = meaningOfFeedback(report.feedbackType)
  const delivery = complainer(deliveries, report)
  if (!meaning || !delivery) return
  const { complaint, isTold, suppresses } = meaning
  if (complaint) {
    const { userAgent, reportedBy } = report
    const arrivedAt = report.arrivedAt ?? receivedAt
    const row = { ...delivery, feedbackType: complaint, userAgent, reportedBy, arrivedAt }
    if (!(await insertComplaint(tx, row, at))) return
  }
  if (suppresses) changes.suppressed.push({ delivery, reason: suppresses })
  if (!isTold) return
  changes.facts.push({
    ...placeOf(delivery),
    type: 'complained',
    recipient: delivery.email,
    response: null,
    enhancedStatus: null,
    classification: null,
    failureCode: null,
  })
}

/** The one recipient that the report can be from; where several had the same return path, the one it names. */
function complainer(
  deliveries: ReportedDelivery[],
  { addresses }: FeedbackReport,
): ReportedDelivery | undefined {
  if (deliveries.length <= 1) return deliveries[0]
  const keys = new Set(addresses.map(sameAddressKey))
  const named = deliveries.filter(({ addressKey }) => keys.has(addressKey))
  // A report without the recipient leaves the To field of what was sent, which names them all.
  return named.length === 1 ? named[0] : undefined
}
