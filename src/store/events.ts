// Events: the facts of a submission that customers are told, and what a blocked queue means for it.
import { type SubmissionId, uuidFor } from '../base/ids.ts'
import type { Queryable } from '../postgres/db.ts'

/** The server that was spoken to. */
interface Remote {
  host: string
  ip: string
  tls: string | null
  /** The suite, as OpenSSL names it; absent where there was no TLS. */
  cipher?: string | null
  /** Which command the response answers; absent where nothing was answered. */
  stage?: string
}

/** What an event tells. */
export interface EventFact {
  type: string
  recipient: string | null
  at: Date
  attempt: number | null
  remote: Remote | null
  response: string | null
  enhancedStatus: string | null
  classification: string | null
}

export interface EventRow extends EventFact {
  id: string
  seq: number
  /** 0 for what is stored; else counts, from 1, what stands behind the stored event of that `seq`. */
  ordinal: number
}

const eventColumns = `e.id, e.seq, 0 as ordinal, e.type, e.recipient, e.at, e.attempt, e.remote, e.response,
  e.enhanced_status as "enhancedStatus", e.classification`

/**
 * What a blocked queue means for each recipient that waits in it untried: an event made of the queue's own record, which
 * costs no write a message. It stands where it belongs by time, and is gone once the recipient was tried.
 */
const waits = `select null::uuid as id, b.seq, d.position + 1 as ordinal, 'deferred' as type, d.email as recipient,
    greatest(r.last_fault_at, s.created_at) as at, null::integer as attempt, null::jsonb as remote,
    r.last_fault as response, null as "enhancedStatus", r.last_fault_class as classification
  from submission s
  cross join lateral (select distinct route from delivery where submission_id = s.id and status = 'pending') q
  join route r on r.key = q.route and r.failures > 0 and r.last_fault is not null
  cross join lateral (select coalesce((select e.seq from event e where e.submission_id = s.id and e.at <= r.last_fault_at
    order by e.seq desc limit 1), 0) as seq) b
  join delivery d on d.submission_id = s.id and d.route = r.key and d.status = 'pending'
  where s.id = $1 and s.status = 'pending'`

/** The submission's events, oldest first, after the one given (null for all). The first is the submission itself. */
export async function listEvents(
  db: Queryable,
  submissionId: SubmissionId,
  after: { seq: number; ordinal: number } | null,
  limit: number,
): Promise<EventRow[]> {
  const rows = await db.query<EventRow>(
    `select * from (
      select id, 0 as seq, 0 as ordinal, 'accepted' as type, null as recipient, created_at as at, null::integer as attempt,
        null::jsonb as remote, null as response, null as "enhancedStatus", null as classification
      from submission where id = $1
      union all
      (select ${eventColumns} from event e where e.submission_id = $1 and e.seq >= $2 order by e.seq limit $4 + 1)
      union all
      ${waits}
    ) found where (seq, ordinal) > ($2, $3) order by seq, ordinal limit $4`,
    [submissionId, after?.seq ?? -1, after?.ordinal ?? 0, limit],
  )
  return rows.map((row) =>
    row.ordinal === 0
      ? row
      : { ...row, id: uuidFor(`${submissionId} ${row.ordinal} ${row.at.toISOString()}`) },
  )
}

/** Single events, but for the first of a submission, which is the submission itself. */
export async function findEvents(
  db: Queryable,
  wanted: readonly { submission: string; seq: number }[],
): Promise<(EventRow & { submissionId: SubmissionId })[]> {
  return await db.query<EventRow & { submissionId: SubmissionId }>(
    `select e.submission_id as "submissionId", ${eventColumns}
    from unnest($1::uuid[], $2::integer[]) as x(submission_id, seq)
    join event e on e.submission_id = x.submission_id and e.seq = x.seq`,
    [wanted.map(({ submission }) => submission), wanted.map(({ seq }) => seq)],
  )
}
