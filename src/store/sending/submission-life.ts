// Details beyond a submission's events: when each recipient is tried next, how servers answered, and the sent content.
import type { SubmissionId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import type { MessageRow } from '../mailbox/messages.ts'
import type { StoredStep } from './conversation.ts'

export interface RecipientOutlook {
  email: string
  attempts: number
  failureCode: string | null
  /** Whether it is with a remote server now. */
  isOnWire: boolean
  /** When it is tried next, and when it is given up. Null unless it waits. */
  nextAttemptAt: Date | null
  givenUpAt: Date | null
  /** Whether an operator has paused its queue. */
  isPaused: boolean
}

export interface Exchange {
  eventId: string
  cipher: string | null
  stage: string | null
  /** The rule for TLS that applied, and how the server violated it. Null if there was none. */
  tlsPolicy: string | null
  tlsViolation: string | null
  conversation: StoredStep[] | null
}

/** Lists the recipients in the order of the submission. */
export async function listOutlooks(db: Queryable, id: SubmissionId): Promise<RecipientOutlook[]> {
  return await db.query<RecipientOutlook>(
    `select d.email, d.attempts, d.failure_code as "failureCode", d.claim_epoch is not null as "isOnWire",
      case when w.waits and d.claim_epoch is null then greatest(d.due_at, r.not_before) end as "nextAttemptAt",
      case when w.waits then d.expires_at end as "givenUpAt", w.waits and coalesce(r.paused, false) as "isPaused"
    from delivery d
    cross join lateral (select d.status in ('pending', 'deferred') as waits) w
    left join route r on r.key = d.route
    where d.submission_id = $1 order by d.position`,
    [id],
  )
}

/** Lists the exchanges of the newest events that have an answer. */
export async function listExchanges(db: Queryable, id: SubmissionId, limit: number): Promise<Exchange[]> {
  return await db.query<Exchange>(
    `select e.id as "eventId", e.remote ->> 'cipher' as cipher, e.remote ->> 'stage' as stage, e.remote ->> 'policy' as "tlsPolicy",
      e.remote ->> 'violation' as "tlsViolation", e.conversation
    from event e where e.submission_id = $1 and e.remote is not null order by e.seq desc limit $2`,
    [id, limit],
  )
}

export interface SentContent extends Pick<MessageRow<string>, 'recipients' | 'text' | 'html' | 'isCut'> {
  createdAt: Date
}

/** The content of a send without an inbox, each text cut to `maxLength` characters; null once it is deleted. */
export async function findSentContent(
  db: Queryable,
  id: SubmissionId,
  maxLength: number,
): Promise<SentContent | null> {
  const isCut = (column: string) => `octet_length(left(${column}, $2)) < octet_length(${column})`
  const [row] = await db.query<SentContent>(
    `select c.recipients, left(c.text, $2) as text, left(c.html, $2) as html, c.created_at as "createdAt",
      ${isCut('c.text')} or coalesce(${isCut('c.html')}, false) as "isCut"
    from send_content c where c.submission_id = $1`,
    [id, maxLength],
  )
  return row ?? null
}

/** Returns the thread of the message; null if it is gone or its inbox was deleted. */
export async function findThreadOf(db: Queryable, messageId: string): Promise<string | null> {
  const [row] = await db.query<{ id: string }>(
    `select m.thread_id as id from message m join inbox b on b.id = m.inbox_id and b.status <> 'deleted' where m.id = $1`,
    [messageId],
  )
  return row?.id ?? null
}
