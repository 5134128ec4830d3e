// What ends the writing to an address, and what a report makes of a recipient: pure rules.
import type { RecipientReport } from '../../mail/bounce/recipient-report.ts'
import { type Classification, classify } from '../../mail/bounce/reply-code.ts'
import type { SuppressionReason } from '../../store/sending/suppressions.ts'

/** What a delivery report does to a recipient: an event, and where it failed, an end. */
interface ReportMeaning {
  type: 'bounced' | 'deferred'
  classification: Classification
  failureCode: 'hard_bounce' | 'policy_rejected' | 'soft_bounce_expired' | null
  suppresses: boolean
}

/**
 * A report of failure ends the recipient; it suppresses where the same refusal in our own conversation would. A report
 * of delay is told, no more; one of success says nothing new (null).
 */
export function meaningOf({ action, code, enhanced, stage, text }: RecipientReport): ReportMeaning | null {
  if (action === 'delivered') return null
  // What is not understood is temporary.
  const isPermanent = code === null ? enhanced?.startsWith('5') === true : code >= 500
  const reply = { code: code ?? (isPermanent ? 550 : 450), enhanced, text }
  const { classification, failureCode, suppresses } = classify(reply, stage)
  if (action === 'delayed') return { type: 'deferred', classification, failureCode: null, suppresses: false }
  return { type: 'bounced', classification, failureCode, suppresses }
}

/** A kind of complaint, as customers see it. */
type ComplaintType = 'abuse' | 'fraud' | 'virus' | 'not-spam' | 'other'

/** What a feedback report is taken for: a complaint to keep, an event to tell, an address to suppress. */
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
  // The recipient says that what was filtered out is wanted.
  ['not-spam', { complaint: 'not-spam', isPublished: false, suppresses: null }],
  ['opt-out', { complaint: null, isPublished: false, suppresses: 'unsubscribe' }],
])

/** By the report's type; failures of authentication and types that nobody knows are no complaint (null). */
export function meaningOfFeedback(feedbackType: string): FeedbackMeaning | null {
  return feedbackMeanings.get(feedbackType) ?? null
}
