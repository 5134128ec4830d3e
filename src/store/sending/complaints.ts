// Complaints: the content of feedback reports about sent mail.
import { type MessageId, newUuid, type OrganizationId, type SubmissionId } from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import type { Tx } from '../../postgres/db.ts'
import { newestFirst } from '../rows.ts'

export interface ComplaintRow {
  id: string
  organizationId: OrganizationId
  submissionId: SubmissionId
  messageId: MessageId | null
  email: string
  feedbackType: string
  userAgent: string | null
  reportedBy: string | null
  arrivedAt: Date
  createdAt: Date
}

type NewComplaint = Omit<ComplaintRow, 'id' | 'createdAt'> & { addressKey: string }

/** Adds a complaint. Returns false if the same recipient of the submission has already complained in this way. */
export async function insertComplaint(tx: Tx, complaint: NewComplaint, at: Date): Promise<boolean> {
  const named = new Arguments({
    id: newUuid(),
    organization_id: complaint.organizationId,
    submission_id: complaint.submissionId,
    message_id: complaint.messageId,
    email: complaint.email,
    address_key: complaint.addressKey,
    feedback_type: complaint.feedbackType,
    user_agent: complaint.userAgent,
    reported_by: complaint.reportedBy,
    arrived_at: complaint.arrivedAt,
    created_at: at,
  })
  const added = await tx.query(
    `${named.insertInto('complaint')}
    on conflict (submission_id, address_key, feedback_type) do nothing returning id`,
    named.values,
  )
  return added.length > 0
}

/** The organization's complaints, newest first, after `beforeId`. */
export const listComplaints = newestFirst<ComplaintRow>(
  `id, organization_id as "organizationId", submission_id as "submissionId", message_id as "messageId", email,
    feedback_type as "feedbackType", user_agent as "userAgent", reported_by as "reportedBy",
    arrived_at as "arrivedAt", created_at as "createdAt"`,
  'complaint where organization_id = $1',
)
