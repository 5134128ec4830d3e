// Submissions, their recipients' states and their events.
import { sha256 } from '../base/digest.ts'
import type { InboxId, KeyId, MessageId, OrganizationId, SubmissionId, ThreadId } from '../base/ids.ts'
import { column, lines, pick } from './columns.ts'
import type { Queryable, Tx } from './db.ts'
import type { AttachmentEntry, MailboxValue, MessageRow } from './messages.ts'
import type { DeliveryStatus, SubmissionStatus } from './status.ts'

export type SendOperation = 'message' | 'reply' | 'send'

export interface RecipientState {
  email: string
  status: DeliveryStatus
  response: string | null
  updatedAt: string
  attempts: number
}

export interface SubmissionRow {
  id: SubmissionId
  organizationId: OrganizationId
  inboxId: InboxId | null
  messageId: MessageId | null
  sender: MailboxValue
  recipients: RecipientState[]
  subject: string
  metadata: Record<string, string | number | boolean | null>
  purpose: string
  status: SubmissionStatus
  response: string | null
  failureCode: string | null
  createdAt: Date
  updatedAt: Date
}

const columns = `s.id, s.organization_id as "organizationId", s.inbox_id as "inboxId", s.message_id as "messageId", s.sender,
  s.subject, s.metadata, s.purpose, s.status, s.response, s.failure_code as "failureCode",
  s.created_at as "createdAt", s.updated_at as "updatedAt",
  (select jsonb_agg(jsonb_build_object('email', d.email, 'status', d.status, 'response', d.response,
    'updatedAt', d.updated_at, 'attempts', d.attempts) order by d.position)
    from delivery d where d.submission_id = s.id) as recipients`

export async function findSubmission(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<SubmissionRow | null> {
  const [row] = await db.query<SubmissionRow>(
    `select ${columns} from submission s where s.id = $2 and s.organization_id = $1`,
    [organizationId, id],
  )
  return row ?? null
}

/** Several submissions of whatever organization. */
export async function findSubmissions(db: Queryable, ids: readonly string[]): Promise<SubmissionRow[]> {
  return await db.query<SubmissionRow>(`select ${columns} from submission s where s.id = any($1::uuid[])`, [
    ids,
  ])
}

export interface SubmissionFilter {
  organizationId: OrganizationId
  inboxIds: InboxId[] | null
  status: string | null
  recipientKey: string | null
  since: Date | null
  until: Date | null
}

/** The organization's submissions, newest first, after `beforeId`. */
export async function listSubmissions(
  db: Queryable,
  filter: SubmissionFilter,
  beforeId: string | null,
  limit: number,
): Promise<SubmissionRow[]> {
  return await db.query<SubmissionRow>(
    `select ${columns} from submission s
    where s.organization_id = $1 and ($2::text[] is null or s.inbox_id = any($2)) and ($3::text is null or s.status = $3)
      and ($4::text is null or exists (
        select from delivery d where d.submission_id = s.id and d.organization_id = $1 and d.address_key = $4))
      and ($5::timestamptz is null or s.created_at >= $5) and ($6::timestamptz is null or s.created_at < $6)
      and ($7::uuid is null or s.id < $7)
    order by s.id desc limit $8`,
    [
      ...[
        filter.organizationId,
        filter.inboxIds,
        filter.status,
        filter.recipientKey,
        filter.since,
        filter.until,
      ],
      ...[beforeId, limit],
    ],
  )
}

export interface EventRow {
  id: string
  seq: number
  type: string
  recipient: string | null
  at: Date
  attempt: number | null
  remote: { host: string; ip: string; tls: string | null } | null
  response: string | null
  enhancedStatus: string | null
  classification: string | null
}

/** The submission's events, oldest first, after the number `afterSeq` (-1 for all). The first is the submission itself. */
export async function listEvents(
  db: Queryable,
  submissionId: SubmissionId,
  afterSeq: number,
  limit: number,
): Promise<EventRow[]> {
  return await db.query<EventRow>(
    `select id, 0 as seq, 'accepted' as type, null as recipient, created_at as at, null::integer as attempt,
      null::jsonb as remote, null as response, null as "enhancedStatus", null as classification
    from submission where id = $1 and $2 < 0
    union all
    (select id, seq, type, recipient, at, attempt, remote, response, enhanced_status, classification
    from event where submission_id = $1 and seq > $2 order by seq limit $3)
    order by seq limit $3`,
    [submissionId, afterSeq, limit],
  )
}

/** Single events, but for the first of a submission, which is the submission itself. */
export async function findEvents(
  db: Queryable,
  wanted: readonly { submission: string; seq: number }[],
): Promise<(EventRow & { submissionId: SubmissionId })[]> {
  return await db.query<EventRow & { submissionId: SubmissionId }>(
    `select e.submission_id as "submissionId", e.id, e.seq, e.type, e.recipient, e.at, e.attempt, e.remote, e.response,
      e.enhanced_status as "enhancedStatus", e.classification
    from unnest($1::uuid[], $2::integer[]) as x(submission_id, seq)
    join event e on e.submission_id = x.submission_id and e.seq = x.seq`,
    [wanted.map(({ submission }) => submission), wanted.map(({ seq }) => seq)],
  )
}

/** One send as `accept_sends` takes it: first what decides over it, then what is written when it passes. */
export interface NewSend {
  org: OrganizationId
  key: KeyId
  op: SendOperation
  idem: string
  /** SHA-256 of the request. */
  hash: Buffer
  /** A refusal found beforehand; it counts only when the key has no earlier result and the inbox lives. */
  refusal: string | null
  /** Null for a send of no inbox: it has neither thread nor message. */
  inbox: InboxId | null
  thread: ThreadId | null
  /** Whether the thread is new; null where there is none. */
  fresh: boolean | null
  /** Where there is no inbox: the customer's domain that it is sent from, and further header fields. */
  domain_id: string | null
  headers: Record<string, string> | null
  sub: SubmissionId

  id: MessageId | null
  mid: string
  irt: string | null
  refs: string[]
  sender: MailboxValue
  rcpts: MessageRow['recipients']
  participants: string[]
  subject: string
  thread_subject: string
  body: string
  html: string | null
  metadata: MessageRow['metadata']
  purpose: string
  attachments: AttachmentEntry[]
  raw: string | null
  deliveries: { position: number; email: string; key: string; domain: string; route: string }[]
  at: Date
  expires_at: Date
}

export interface SendVerdict {
  /** `accepted`, `replayed`, or the code of a refusal. */
  verdict: string
  submissionId: SubmissionId
  retryAfterSeconds: number | null
  /** The positions of recipients that are suppressed. */
  suppressed: number[]
}

const acceptance = `select i, verdict, submission_id as "submissionId", retry_after as "retryAfterSeconds",
  muted as suppressed
  from accept_sends(${Array.from({ length: 43 }, (_, i) => `$${i + 1}`).join(', ')})`

/** One call a batch; answers a verdict for each send, in order. */
export async function acceptSends(db: Queryable, sends: NewSend[], at: Date): Promise<SendVerdict[]> {
  const told = await db.query<SendVerdict & { i: number }>(acceptance, [
    at,
    ...organizationColumns(sends),
    column('uuid', [...new Set(pick(sends, 'key'))]),
    column('text', [...new Set(sends.flatMap(({ inbox }) => inbox ?? []))]),
    ...decidingColumns(sends),
    ...recipientColumns(sends),
    ...writtenColumns(sends),
  ])
  const byPlace = new Map(told.map(({ i, ...verdict }) => [i, verdict]))
  const accepted = { verdict: 'accepted', retryAfterSeconds: null, suppressed: [] }
  return sends.map(({ sub }, i) => byPlace.get(i + 1) ?? { ...accepted, submissionId: sub })
}

/** The organizations in order, and what is asked of each. */
function organizationColumns(sends: NewSend[]): Buffer[] {
  const messages = new Map<OrganizationId, number>()
  const recipients = new Map<OrganizationId, number>()
  for (const { org, deliveries } of sends) {
    messages.set(org, (messages.get(org) ?? 0) + 1)
    recipients.set(org, (recipients.get(org) ?? 0) + deliveries.length)
  }
  const organizations = [...messages.keys()].sort()
  return [
    column('uuid', organizations),
    column(
      'integer',
      organizations.map((org) => messages.get(org)!),
    ),
    column(
      'integer',
      organizations.map((org) => recipients.get(org)!),
    ),
  ]
}

function decidingColumns(sends: NewSend[]): Buffer[] {
  const digests = sends.map(({ org, op, idem }) => sha256(`${org} ${op} ${idem}`))
  return [
    column('uuid', pick(sends, 'org')),
    column('uuid', pick(sends, 'key')),
    column('bytea', digests),
    column('bytea', pick(sends, 'hash')),
    column('text', pick(sends, 'refusal')),
    column('text', pick(sends, 'inbox')),
    column('text', pick(sends, 'thread')),
    column('boolean', pick(sends, 'fresh')),
    column('uuid', pick(sends, 'sub')),
    column(
      'integer',
      sends.map(({ deliveries }) => deliveries.length),
    ),
  ]
}

function recipientColumns(sends: NewSend[]): Buffer[] {
  const places = sends.flatMap(({ deliveries }, i) => deliveries.map(() => i + 1))
  const recipients = sends.flatMap(({ deliveries }) => deliveries)
  return [
    column('integer', places),
    column('integer', pick(recipients, 'position')),
    column('text', pick(recipients, 'email')),
    column('text', pick(recipients, 'key')),
    column('text', pick(recipients, 'domain')),
    column('text', pick(recipients, 'route')),
  ]
}

function writtenColumns(sends: NewSend[]): Buffer[] {
  return [
    column('text', pick(sends, 'op')),
    column('text', pick(sends, 'idem')),
    column('text', pick(sends, 'id')),
    column('text', pick(sends, 'mid')),
    column('text', pick(sends, 'irt')),
    column('text', lines(pick(sends, 'refs'))),
    column('jsonb', pick(sends, 'sender')),
    column('jsonb', pick(sends, 'rcpts')),
    column('text', lines(pick(sends, 'participants'))),
    column('text', pick(sends, 'subject')),
    column('text', pick(sends, 'thread_subject')),
    column('text', pick(sends, 'body')),
    column('text', pick(sends, 'html')),
    column('jsonb', pick(sends, 'metadata')),
    column('text', pick(sends, 'purpose')),
    column('jsonb', pick(sends, 'attachments')),
    column('uuid', pick(sends, 'raw')),
    column('uuid', pick(sends, 'domain_id')),
    column('jsonb', pick(sends, 'headers')),
    column('timestamptz', pick(sends, 'at')),
    column('timestamptz', pick(sends, 'expires_at')),
  ]
}

/** Marks the results of the message's send as deleted: its idempotency key answers 410 from now on. */
export async function forgetResult(tx: Tx, submissionId: SubmissionId): Promise<void> {
  await tx.query('update submission set result_deleted = true where id = $1', [submissionId])
}
