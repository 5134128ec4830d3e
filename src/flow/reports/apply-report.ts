// Applies proved reports to recipients, events, complaints and suppressions, each report once.

import { sameAddressKey } from '../../mail/address.ts'
import type { RecipientReport } from '../../mail/bounce/recipient-report.ts'
import type { DeliveryReport, FeedbackReport, Report } from '../../mail/bounce/report.ts'
import type { ReturnPathToken } from '../../mail/return-path.ts'
import type { Tx } from '../../postgres/db.ts'
import { insertComplaint } from '../../store/sending/complaints.ts'
import {
  lockReportedDeliveries,
  type ReportedDelivery,
  type ReportFact,
  recordReports,
} from '../../store/sending/reports.ts'
import { type SuppressionReason, suppressRecipients } from '../../store/sending/suppressions.ts'
import { recipientMoves } from '../states.ts'
import { meaningOf, meaningOfFeedback } from './report-meaning.ts'

/** A report with the token that proves which delivery it is about. */
export interface ProvedReport {
  id: string
  token: ReturnPathToken
  report: Report
  receivedAt: Date
}

/** The changes that a batch of reports makes. */
interface Changes {
  facts: ReportFact[]
  suppressed: { delivery: ReportedDelivery; reason: SuppressionReason }[]
}

/**
 * Applies the reports in order. Returns the ids that must wait, as their delivery is on the wire. Repeats change nothing.
 */
export async function applyReports(
  tx: Tx,
  reports: ProvedReport[],
  at: Date,
): Promise<{ waiting: string[] }> {
  const locked = await lockReportedDeliveries(
    tx,
    reports.map(({ token }) => token),
  )
  const byKey = new Map(locked.map((delivery) => [keyOf(delivery), delivery]))
  const changes: Changes = { facts: [], suppressed: [] }
  const waiting: string[] = []
  for (const { id, token, report, receivedAt } of reports) {
    const delivery = byKey.get(keyOf(token))
    if (!delivery) continue
    if (report.kind === 'feedback') await complain(tx, delivery, report, { receivedAt, at }, changes)
    else if (!bounce(delivery, report, changes)) waiting.push(id)
  }
  await recordReports(tx, changes.facts, at)
  const suppressed = changes.suppressed.map(({ delivery, reason }) => ({ ...delivery, reason }))
  await suppressRecipients(tx, suppressed, at)
  return { waiting }
}

function keyOf({ submissionId, position }: ReturnPathToken): string {
  return `${submissionId} ${position}`
}

/** Notes a bounce or a delay in `changes`. Returns false if the report must wait, as the delivery is on the wire. */
function bounce(delivery: ReportedDelivery, report: DeliveryReport, changes: Changes): boolean {
  const recipient = partOf(delivery, report.recipients)
  if (!recipient) return true
  if (delivery.isOnWire) return false
  const meaning = meaningOf(recipient)
  if (!meaning) return true
  const { type, classification, failureCode, suppresses } = meaning
  const isNews = recipientMoves[delivery.status].includes('bounced')
  if (!isNews || (type === 'deferred' && delivery.isDelayPublished)) return true
  if (type === 'bounced') delivery.status = 'bounced'
  else delivery.isDelayPublished = true
  changes.facts.push({
    ...eventKeyOf(delivery),
    type,
    recipient: delivery.email,
    response: recipient.text || `reported as ${recipient.action}`,
    enhancedStatus: recipient.enhanced,
    classification,
    failureCode,
  })
  if (suppresses) changes.suppressed.push({ delivery, reason: 'hard_bounce' })
  return true
}

function eventKeyOf({ submissionId, position }: ReportedDelivery) {
  return { submissionId, position }
}

/**
 * Returns the part of the report that names the delivery's recipient. If no part does, the other parts count: they name an
 * address that the mail was forwarded to, or none. No other recipient's mail has this return path.
 */
function partOf(
  { addressKey }: ReportedDelivery,
  recipients: RecipientReport[],
): RecipientReport | undefined {
  const named = recipients.findLast(({ addresses }) =>
    addresses.some((address) => sameAddressKey(address) === addressKey),
  )
  return named ?? forwardedTo(recipients)
}

/** Mail forwarded to several addresses has failed only if all failed. Prefers a failure that suppresses no address. */
function forwardedTo(recipients: RecipientReport[]): RecipientReport | undefined {
  if (recipients.length === 1) return recipients[0]
  if (recipients.some(({ action }) => action !== 'failed')) return undefined
  return recipients.find((recipient) => !meaningOf(recipient)?.suppresses) ?? recipients[0]
}

async function complain(
  tx: Tx,
  delivery: ReportedDelivery,
  report: FeedbackReport,
  { receivedAt, at }: { receivedAt: Date; at: Date },
  changes: Changes,
): Promise<void> {
  const meaning = meaningOfFeedback(report.feedbackType)
  if (!meaning) return
  const { complaint, isPublished, suppresses } = meaning
  if (complaint) {
    const { userAgent, reportedBy } = report
    const arrivedAt = report.arrivedAt ?? receivedAt
    const row = { ...delivery, feedbackType: complaint, userAgent, reportedBy, arrivedAt }
    if (!(await insertComplaint(tx, row, at))) return
  }
  if (suppresses) changes.suppressed.push({ delivery, reason: suppresses })
  if (!isPublished) return
  changes.facts.push({
    ...eventKeyOf(delivery),
    type: 'complained',
    recipient: delivery.email,
    response: null,
    enhancedStatus: null,
    classification: null,
    failureCode: null,
  })
}
