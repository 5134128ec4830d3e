// Submissions, their recipients' states and their events.
import {
  firstUuidAt,
  type InboxId,
  type MessageId,
  type OrganizationId,
  type SubmissionId,
} from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { MailboxValue } from '../mailbox/messages.ts'
import { lastUuid } from '../rows.ts'
import { type DeliveryStatus, type SubmissionStatus, submissionStatuses } from '../status.ts'
import { stretchOf } from '../stretch.ts'

/** `submission`: a mail that a client wrote, over SMTP. */
export type SendOperation = 'message' | 'reply' | 'send' | 'submission'

export interface RecipientState {
  email: string
  status: DeliveryStatus
  response: string | null
  failureCode: string | null
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

// Texts by people disappear from every read when the inbox is deleted, although they are erased later.
const written = (column: string, erased: string) =>
  `case when exists (select from inbox b where b.id = s.inbox_id and b.status = 'deleted') then ${erased} else ${column} end`

const columns = `s.id, s.organization_id as "organizationId", s.inbox_id as "inboxId", s.message_id as "messageId",
  ${written('s.sender', `s.sender - 'name'`)} as sender, ${written('s.subject', `''`)} as subject,
  ${written('s.metadata', `'{}'`)} as metadata, s.purpose, s.status, s.response, s.failure_code as "failureCode",
  s.created_at as "createdAt", s.updated_at as "updatedAt",
  (select jsonb_agg(jsonb_build_object('email', d.email, 'status', d.status,
    'response', coalesce(d.response, (select r.last_fault from route r
      where d.status = 'pending' and r.key = d.route and r.failures > 0)), 'failureCode', d.failure_code, 'updatedAt', d.updated_at, 'attempts', d.attempts) order by d.position)
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

/** Finds submissions of any organization. */
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
      where s.id = any(array(select p.id from (${ids}) p where p.id >= $2::uuid order by p.id desc limit $4)) order by s.id desc`,
      [...bounds, ...values],
    )
  if (recipientKey !== null) return await list(idsTo, [recipientKey, status, inboxIds])
  const ids = inboxIds === null ? idsOfOrganization : idsOfInboxes
  const statuses = status === null ? submissionStatuses : [status]
  return await list(statuses.map(ids).join(' union all '), inboxIds === null ? [] : [inboxIds])
}

/** Selects the ids of one status. Each list is a range of an index, however many submissions have another status. */
function idsOfOrganization(status: SubmissionStatus): string {
  const stretch = stretchOf(
    ['s.organization_id', 's.status', 's.id'],
    ['$1::uuid', `'${status}'`],
    '$3::uuid',
  )
  return `(select s.id from submission s where ${stretch} limit $4)`
}

function idsOfInboxes(status: SubmissionStatus): string {
  const stretch = stretchOf(['s.inbox_id', 's.status', 's.id'], ['i.id', `'${status}'`], '$3::uuid')
  return `(select x.id from (select distinct unnest($5::text[]) as id) i
    cross join lateral (select from inbox b where b.id = i.id and b.organization_id = $1 limit 1) b
    cross join lateral (select s.id from submission s where ${stretch} limit $4) x)`
}

const recipientStretch = stretchOf(
  ['d.organization_id', 'd.address_key', 'd.submission_id'],
  ['$1::uuid', '$5::text'],
  '$3::uuid',
)
const idsTo = `select d.submission_id as id from delivery d cross join lateral (
    select from submission s where s.id = d.submission_id and ($6::text is null or s.status = $6)
      and ($7::text[] is null or s.inbox_id = any($7)) limit 1
  ) s where ${recipientStretch} limit $4`

/** Marks the results of deleted messages, so that their idempotency keys answer 410, and erases texts by people in them. */
export async function eraseResults(tx: Tx, ids: readonly SubmissionId[]): Promise<void> {
  if (ids.length === 0) return
  await tx.query(
    `update submission set result_deleted = true, subject = '', metadata = '{}', sender = sender - 'name'
    where id = any($1::uuid[])`,
    [ids],
  )
}
