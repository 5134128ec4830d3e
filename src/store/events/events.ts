// Events: the facts of a submission that customers see, and the effect of a blocked queue on it.
import { type SubmissionId, uuidFor } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'

/** The server that was contacted. */
interface Remote {
  host: string
  ip: string
  tls: string | null
  /** The cipher suite by its OpenSSL name. Absent without TLS. */
  cipher?: string | null
  /** The command that the response answers. Absent without an answer. */
  stage?: string
  /** The rule for TLS that applied, and how the connection violated it. Absent without a rule. */
  policy?: string
  violation?: string
}

/** The content of an event. */
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
  /** Why its recipient failed. Null if the event does not end the delivery. */
  failureCode: string | null
  seq: number
  /** 0 for a stored event. Otherwise counts from 1 the computed events after the stored event of that `seq`. */
  ordinal: number
}

/** The failure code of the recipient, if the event `e` ended it. */
const failureCode = `case when e.type in ('bounced', 'failed', 'suppressed', 'cancelled') then (select d.failure_code
    from delivery d where d.submission_id = e.submission_id and d.email = e.recipient limit 1) end`

const eventColumns = `e.id, e.seq, 0 as ordinal, e.type, e.recipient, e.at, e.attempt, e.remote, e.response,
  e.enhanced_status as "enhancedStatus", e.classification, ${failureCode} as "failureCode"`

/**
 * The events of a row `e`: the row's own event, the beginning of its attempt, and the first claim of its recipient. `back`:
 * the number of the row minus that of the event.
 */
const parts = `lateral (
    select * from (values (0, e.type, e.at), (1, 'attempted', e.began_at), (1 + num_nonnulls(e.began_at), 'queued', e.queued_at))
      made(back, type, at) where at is not null
  ) part`

const stored = `select e.id, e.seq - part.back as seq, 0 as ordinal, part.type, e.recipient, part.at,
    case when part.type <> 'queued' then e.attempt end as attempt, case when part.type <> 'queued' then e.remote end as remote,
    case when part.back = 0 then e.response end as response,
    case when part.back = 0 then e.enhanced_status end as "enhancedStatus",
    case when part.back = 0 then e.classification end as classification,
    case when part.back = 0 then ${failureCode} end as "failureCode", part.back
  from (select * from event where submission_id = $1 and seq >= $2 order by seq limit $4 + 1) e cross join ${parts}`

/**
 * The effect of a blocked queue on each recipient that waits in it untried: an event computed from the queue's record, so
 * that it costs no write per message. This event is listed by its time, and disappears after the recipient's first attempt.
 */
const waits = `select null::uuid as id, b.seq, d.position + 1 as ordinal, 'deferred' as type, d.email as recipient,
    greatest(r.last_fault_at, s.created_at) as at, null::integer as attempt, null::jsonb as remote,
    r.last_fault as response, null as "enhancedStatus", r.last_fault_class as classification,
    null as "failureCode", 0 as back
  from submission s
  cross join lateral (select distinct route from delivery where submission_id = s.id and status = 'pending') q
  join route r on r.key = q.route and r.failures > 0 and r.last_fault is not null
  cross join lateral (select coalesce((select e.seq - part.back from event e cross join ${parts}
    where e.submission_id = s.id and part.at <= r.last_fault_at order by e.seq desc, part.back limit 1), 0) as seq) b
  join delivery d on d.submission_id = s.id and d.route = r.key and d.status = 'pending'
  where s.id = $1 and s.status = 'pending'`

/** An event's key in the order of the list. `since` is the time of a computed event in milliseconds, and 0 for a stored event. */
export interface EventKey {
  seq: number
  since: number
  ordinal: number
}

export function eventKey({ seq, ordinal, at }: EventRow): EventKey {
  return { seq, since: ordinal > 0 ? at.getTime() : 0, ordinal }
}

/** Lists the submission's events, oldest first, after `after` (null for all). The first is the submission itself. */
export async function listEvents(
  db: Queryable,
  submissionId: SubmissionId,
  after: EventKey | null,
  limit: number,
): Promise<EventRow[]> {
  const rows = await db.query<EventRow & { back: number }>(
    `select * from (
      select id, 0 as seq, 0 as ordinal, 'accepted' as type, null as recipient, created_at as at, null::integer as attempt,
        null::jsonb as remote, null as response, null as "enhancedStatus", null as classification,
        null as "failureCode", 0 as back
      from submission where id = $1
      union all
      ${stored}
      union all
      ${waits}
    ) found cross join lateral (select case when ordinal > 0 then at else 'epoch' end as since) ordered
    where (seq, since, ordinal) > ($2, $5, $3) order by seq, since, ordinal limit $4`,
    [submissionId, after?.seq ?? -1, after?.ordinal ?? 0, limit, new Date(after?.since ?? 0)],
  )
  return rows.map(({ back, ...row }) => ({ ...row, id: idOf(submissionId, row, back) }))
}

/** The id of a computed event is derived from its sources. */
function idOf(submissionId: SubmissionId, { id, ordinal, type, at }: EventRow, back: number): string {
  if (ordinal > 0) return uuidFor(`${submissionId} ${ordinal} ${at.toISOString()}`)
  return back > 0 ? uuidFor(`${id} ${type}`) : id
}

/** Finds stored events by submission and number. The outbox names only these, and the first event of a submission. */
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
