// Pure rules: the effect of a report on a recipient, and which reports suppress an address.
import type { RecipientReport } from '../../mail/bounce/recipient-report.ts'
import { type Classification, classify } from '../../mail/bounce/reply-code.ts'
import type { SuppressionReason } from '../../store/sending/suppressions.ts'

/** The effect of a delivery report on a recipient: an event, and a final state if the delivery failed. */
interface ReportMeaning {
  type: 'bounced' | 'deferred'
  classification: Classification
  failureCode: 'hard_bounce' | 'policy_rejected' | 'soft_bounce_expired' | null
  suppresses: boolean
}

/**
 * A report of failure is final for the recipient. It suppresses the address if the same reply in our own SMTP session would.
 * A report of delay only becomes an event. A report of success has no effect, and null is returned.
 */
export function meaningOf({ action, code, enhanced, stage, text }: RecipientReport): ReportMeaning | null {
  if (action === 'delivered') return null
  // An unknown status counts as temporary.
  const isPermanent = code === null ? enhanced?.startsWith('5') === true : code >= 500
  const reply = { code: code ?? (isPermanent ? 550 : 450), enhanced, text }
  const { classification, failureCode, suppresses } = classify(reply, stage)
  if (action === 'delayed') return { type: 'deferred', classification, failureCode: null, suppresses: false }
  return { type: 'bounced', classification, failureCode, suppresses }
}

/** A kind of complaint, as customers see it. */
type ComplaintType = 'abuse' | 'fraud' | 'virus' | 'not-spam' | 'other'

/** The effect of a feedback report: a complaint to store, an event to publish, an address to suppress. */
interface FeedbackMeaning {
  complaint: ComplaintType | null
  isPublished: boolean
  suppresses: SuppressionReason | null
}

const feedbackMeanings = new Map<string, FeedbackMeaning>([
  // RFC 5965 7.3: the types that it registers.
  ['abuse', { complaint: 'abuse', isPublished: true, suppresses: 'complaint' }],
  ['fraud', { complaint: 'fraud', isPublished: true, suppresses: 'complaint' }],
  ['virus', { complaint: 'virus', isPublished: true, suppresses: 'complaint' }],
  ['other', { complaint: 'other', isPublished: true, suppresses: 'complaint' }],
  // The recipient wants mail that was filtered out.
  ['not-spam', { complaint: 'not-spam', isPublished: false, suppresses: null }],
  ['opt-out', { complaint: null, isPublished: false, suppresses: 'unsubscribe' }],
])

/** Returns the effect of a feedback type, or null if it has none: authentication failures and unknown types. */
export function meaningOfFeedback(feedbackType: string): FeedbackMeaning | null {
  return feedbackMeanings.get(feedbackType) ?? null
}
