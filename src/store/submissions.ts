// Submissions, their recipients' states and their events.
import { sha256 } from '../base/digest.ts'
import {
  firstUuidAt,
  type InboxId,
  type KeyId,
  type MessageId,
  type OrganizationId,
  type SubmissionId,
  type ThreadId,
} from '../base/ids.ts'
import { column, lines, pick } from '../postgres/columns.ts'
import type { Queryable, Tx, Writer } from '../postgres/db.ts'
import type { AttachmentEntry, MailboxValue, MessageRow } from './messages.ts'
import { type DeliveryStatus, type SubmissionStatus, submissionStatuses } from './status.ts'
import { stretchOf } from './stretch.ts'

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

// What people wrote goes from every read with the inbox, though it is erased later.
const written = (column: string, erased: string) =>
  `case when exists (select from inbox b where b.id = s.inbox_id and b.status = 'deleted') then ${erased} else ${column} end`

const columns = `s.id, s.organization_id as "organizationId", s.inbox_id as "inboxId", s.message_id as "messageId",
  ${written('s.sender', `s.sender - 'name'`)} as sender, ${written('s.subject', `''`)} as subject,
  ${written('s.metadata', `'{}'`)} as metadata, s.purpose, s.status, s.response, s.failure_code as "failureCode",
  s.created_at as "createdAt", s.updated_at as "updatedAt",
  (select jsonb_agg(jsonb_build_object('email', d.email, 'status', d.status,
    'response', coalesce(d.response, (select r.last_fault from route r
      where d.status = 'pending' and r.key = d.route and r.failures > 0)), 'updatedAt', d.updated_at, 'attempts', d.attempts) order by d.position)
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
  status: SubmissionStatus | null
  recipientKey: string | null
  /** Bounds of the id: ids begin with their milliseconds. */
  sinceId: string | null
  untilId: string | null
}

const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** The organization's submissions, newest first, after `beforeId`. */
export async function listSubmissions(
  db: Queryable,
  { organizationId, inboxIds, status, recipientKey, sinceId, untilId }: SubmissionFilter,
  beforeId: string | null,
  limit: number,
): Promise<SubmissionRow[]> {
  const [before = lastUuid] = [untilId, beforeId].filter((id) => id !== null).sort()
  const bounds = [organizationId, sinceId ?? firstUuidAt(0), before, limit]
  const list = async (ids: string, values: unknown[]) =>
    await db.query<SubmissionRow>(
      `select ${columns} from submission s
      where s.id = any(array(select p.id from (${ids}) p order by p.id desc limit $4)) order by s.id desc`,
      [...bounds, ...values],
    )
  if (recipientKey !== null) return await list(idsTo, [recipientKey, status, inboxIds])
  const ids = inboxIds === null ? idsOfOrganization : idsOfInboxes
  const statuses = status === null ? submissionStatuses : [status]
  return await list(statuses.map(ids).join(' union all '), inboxIds === null ? [] : [inboxIds])
}

/** The ids of one status: each list is a stretch of an index, however many there are of other statuses. */
function idsOfOrganization(status: SubmissionStatus): string {
  const stretch = stretchOf(['s.organization_id', 's.status', 's.id'], ['$1::uuid', `'${status}'`], idBounds)
  return `(select s.id from submission s where ${stretch} limit $4)`
}

function idsOfInboxes(status: SubmissionStatus): string {
  const stretch = stretchOf(['s.inbox_id', 's.status', 's.id'], ['b.id', `'${status}'`], idBounds)
  return `(select x.id from inbox b cross join lateral (select s.id from submission s where ${stretch} limit $4) x
    where b.id = any($5::text[]) and b.organization_id = $1)`
}

const idBounds = ['$2::uuid', '$3::uuid'] as const
const recipientStretch = stretchOf(
  ['d.organization_id', 'd.address_key', 'd.submission_id'],
  ['$1::uuid', '$5::text'],
  idBounds,
)
const idsTo = `select d.submission_id as id from delivery d cross join lateral (
    select from submission s where s.id = d.submission_id and ($6::text is null or s.status = $6)
      and ($7::text[] is null or s.inbox_id = any($7)) limit 1
  ) s where ${recipientStretch} limit $4`

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

function idempotencyDigest(organizationId: OrganizationId, operation: SendOperation, key: string): Buffer {
  return sha256(`${organizationId} ${operation} ${key}`)
}

/** A send that nothing has been made of yet. */
export interface AskedSend {
  organizationId: OrganizationId
  operation: SendOperation
  /** Its idempotency key. */
  key: string
  inboxId: InboxId | null
  /** The address keys. */
  recipients: string[]
}

export interface ForeseenRefusal {
  code: 'idempotency_key_reused' | 'not_found' | 'all_recipients_suppressed' | 'send_limit_exceeded'
  retryAfterSeconds?: number
}

/**
 * What `accept_sends` would refuse the send with as things stand, without a lock; null where it would take it. Where its
 * key has been used, any refusal will do: that judges it by its earlier result.
 */
export async function foreseeRefusal(
  db: Queryable,
  { organizationId, operation, key, inboxId, recipients }: AskedSend,
  at: Date,
): Promise<ForeseenRefusal | null> {
  const [row] = await db.query<{
    isSeen: boolean
    isGone: boolean
    isMuted: boolean
    retryAfter: number | null
  }>(
    `select exists (select from submission s where s.idempotency_digest = $2) as "isSeen",
      $3::text is not null and not exists (
        select from inbox b where b.id = $3 and b.organization_id = $1 and b.status = 'active') as "isGone",
      m.muted > 0 and m.muted = cardinality($4::text[]) as "isMuted",
      greatest(
        case when c.in_minute >= (o.limits->>'messagesPerMinute')::integer
          then coalesce(least(60, ceil(extract(epoch from c.minute_started_at + interval '60 s' - $5))), 1) end,
        case when c.in_day >= (o.limits->>'messagesPerDay')::integer
            or c.recipients + cardinality($4) - m.muted > (o.limits->>'recipientsPerDay')::integer
          then ceil(extract(epoch from (c.today + 1)::timestamp at time zone 'UTC' - $5)) end
      )::integer as "retryAfter"
    from organization o
    left join usage u on u.organization_id = o.id
    cross join lateral (
      select d.today, r.minute_started_at, case when r.minute_started_at is null then 0 else u.minute_messages end as in_minute,
        case when u.day = d.today then u.day_messages else 0 end as in_day,
        case when u.day = d.today then u.day_recipients else 0 end as recipients
      from (select ($5::timestamptz at time zone 'UTC')::date as today) d,
        (select case when is_running(u.minute_started_at, $5) then u.minute_started_at end as minute_started_at) r
    ) c
    cross join lateral (
      select count(found.hit)::integer as muted from unnest($4::text[]) k(key)
      left join lateral (
        select true as hit from suppression s where s.organization_id = $1 and s.address_key = k.key limit 1
      ) found on true
    ) m
    where o.id = $1`,
    [organizationId, idempotencyDigest(organizationId, operation, key), inboxId, recipients, at],
  )
  if (!row) return null
  if (row.isSeen) return { code: 'idempotency_key_reused' }
  if (row.isGone) return { code: 'not_found' }
  if (row.isMuted) return { code: 'all_recipients_suppressed' }
  if (row.retryAfter === null) return null
  return { code: 'send_limit_exceeded', retryAfterSeconds: Math.max(1, row.retryAfter) }
}

const acceptance = `select i, verdict, submission_id as "submissionId", retry_after as "retryAfterSeconds",
  muted as suppressed
  from accept_sends(${Array.from({ length: 43 }, (_, i) => `$${i + 1}`).join(', ')})`

/** One call a batch; answers a verdict for each send, in order. */
export async function acceptSends(db: Writer, sends: NewSend[], at: Date): Promise<SendVerdict[]> {
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
  const digests = sends.map(({ org, op, idem }) => idempotencyDigest(org, op, idem))
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

/** Marks the results of messages that go as deleted: their idempotency keys answer 410. What people wrote goes with them. */
export async function eraseResults(tx: Tx, ids: readonly SubmissionId[]): Promise<void> {
  if (ids.length === 0) return
  await tx.query(
    `update submission set result_deleted = true, subject = '', metadata = '{}', sender = sender - 'name'
    where id = any($1::uuid[])`,
    [ids],
  )
}
