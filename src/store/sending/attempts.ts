// The last attempts of recipients that wait for a retry, for operators.
import type { SubmissionId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import type { StoredStep } from './conversation.ts'

export interface AttemptRow {
  submissionId: SubmissionId
  recipient: string
  attempt: number
  /** Null if an earlier version recorded the beginning as a separate event. */
  beganAt: Date | null
  endedAt: Date
  remote: { host: string; ip: string; tls: string | null; source?: string } | null
  response: string | null
  classification: string | null
  conversation: StoredStep[] | null
}

/** Returns the last attempts of up to `limit` retries that wait in the queue, by organization and then by due time. */
export async function listLastAttempts(db: Queryable, route: string, limit: number): Promise<AttemptRow[]> {
  return await db.query<AttemptRow>(
    `select e.submission_id as "submissionId", e.recipient, e.attempt, e.began_at as "beganAt", e.at as "endedAt", e.remote,
      e.response, e.classification, e.conversation
    from (
      select submission_id, email, attempts from delivery
      where route = $1 and status = 'deferred' and claim_epoch is null and status in ('pending', 'deferred')
      order by organization_id, due_at limit $2
    ) d
    cross join lateral (
      select * from event e where e.submission_id = d.submission_id and e.recipient = d.email and e.attempt = d.attempts
      order by e.seq desc limit 1
    ) e`,
    [route, limit],
  )
}
