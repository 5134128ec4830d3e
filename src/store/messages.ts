// Messages and threads as they are read, and the filing of received ones.
import { ServiceError } from '../base/errors.ts'
import {
  type InboxId,
  type MessageId,
  newUuid,
  type OrganizationId,
  type SubmissionId,
  type ThreadId,
} from '../base/ids.ts'
import { Arguments } from '../postgres/arguments.ts'
import { column, lines, pick } from '../postgres/columns.ts'
import type { Queryable, Tx } from '../postgres/db.ts'
import { countFitting, cutToFit, maxAnswerBytes, mostCut, restBytes, textBytes } from './message-weight.ts'
import type { SubmissionStatus } from './status.ts'
import { stretchOf } from './stretch.ts'

export interface MailboxValue {
  email: string
  name?: string
}

/** An attachment's entry. An outbound one's bytes stand in the message's raw row, one after the other. */
export interface AttachmentEntry {
  filename: string
  contentType: string
  size: number
  disposition: 'attachment' | 'inline'
  contentId: string | null
  sha256: string
  scanState: 'unscanned' | 'clean' | 'infected' | 'failed'
  /** Where its bytes stand in the raw row, and how; of an outbound one known once it is scanned. Never shown. */
  place?: { start: number; length: number; encoding: 'base64' | 'quoted-printable' | 'uuencode' | 'none' }
}

export interface SecurityRecord {
  /** The envelope as it came, for the trace header. */
  envelope: { from: string; recipients: string[]; protocol: string; receivedBy: string }
  smtp: { remoteIp: string; helo: string; tls: { encrypted: boolean; protocol: string; cipher: string } }
  authentication: { spf: string; dkim: string; dmarc: string }
}

export interface MessageRow {
  id: MessageId
  organizationId: OrganizationId
  inboxId: InboxId
  threadId: ThreadId
  seq: number
  direction: 'inbound' | 'outbound'
  internetMessageId: string
  inReplyTo: string | null
  referenceIds: string[]
  sender: MailboxValue
  recipients: { to: MailboxValue[]; cc?: MailboxValue[]; bcc?: MailboxValue[]; replyTo?: MailboxValue }
  subject: string
  text: string
  html: string | null
  extractedText: string | null
  /** Its texts are too long for any answer: these are the beginnings of them. */
  isCut: boolean
  metadata: Record<string, string | number | boolean | null>
  purpose: string
  attachments: AttachmentEntry[]
  security: SecurityRecord | null
  submissionId: SubmissionId | null
  submissionStatus: SubmissionStatus | null
  failureCode: string | null
  rawId: string | null
  createdAt: Date
  updatedAt: Date
}

const columnsWith = (body: (column: string) => string) =>
  `m.id, m.organization_id as "organizationId", m.inbox_id as "inboxId", m.thread_id as "threadId", m.seq,
  m.direction, m.internet_message_id as "internetMessageId", m.in_reply_to as "inReplyTo", m.reference_ids as "referenceIds",
  m.sender, m.recipients, m.subject, ${body('m.text')} as text, ${body('m.html')} as html,
  case when m.direction = 'inbound'
    then coalesce(${body('m.extracted_text')}, btrim(${body('m.text')}, E' \\t\\r\\n')) end as "extractedText",
  ${isCut} as "isCut", m.metadata, m.purpose, m.attachments, m.security, m.submission_id as "submissionId",
  coalesce(s.status, m.settled_as) as "submissionStatus", coalesce(s.failure_code, m.settled_code) as "failureCode",
  m.raw_id as "rawId", m.created_at as "createdAt", greatest(m.updated_at, s.updated_at) as "updatedAt"`

const isCut = `${textBytes} > ${maxAnswerBytes}`
const columns = columnsWith(
  (column) => `case when ${isCut} then left(${column}, ${mostCut}) else ${column} end`,
)

// Mail of a deleted inbox is gone from every read at once, though it is purged later.
const itsInbox = `join inbox b on b.id = m.inbox_id and b.status = 'active' left join submission s on s.id = m.submission_id`

export async function findMessage(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<MessageRow | null> {
  const [row] = await db.query<MessageRow>(
    `select ${columns} from message m ${itsInbox} where m.id = $2 and m.organization_id = $1`,
    [organizationId, id],
  )
  return row ? cutToFit(row) : null
}

/** Several messages of whatever organization, their texts cut to `maxLength` characters; without those that are gone. */
export async function findMessagesCut(
  db: Queryable,
  ids: readonly string[],
  maxLength: number,
): Promise<MessageRow[]> {
  return await db.query<MessageRow>(
    `select ${columnsWith((column) => `left(${column}, $2)`)} from message m ${itsInbox} where m.id = any($1)`,
    [ids, maxLength],
  )
}

/** How many a page holds; `orFewer`: or as many of them as an answer can hold. */
export interface PageSize {
  limit: number
  orFewer: boolean
}

export interface MessagePage {
  page: MessageRow[]
  /** The last of them, where there is more behind it. */
  last: MessageRow | null
}

/** Selects rows of `message m` in an order, at most as many as `most` says. */
interface Picked {
  rows(most: string): string
  order: string
}

/**
 * Reads a page of the rows that `picked` selects. It is weighed before it is read: texts that are too much for one
 * answer would take the memory of everybody. A page then ends before them, or, where that is not asked for, is refused.
 */
async function readPage(
  db: Queryable,
  { rows, order }: Picked,
  values: unknown[],
  { limit, orFewer }: PageSize,
): Promise<MessagePage> {
  const [most, mayBeFewer] = [`$${values.length + 1}`, `$${values.length + 2}`]
  const found = await db.query<MessageRow & { weight: number; count: number }>(
    `select ${columns}, m.weight, m.count from (
      select n.*, sum(n.weight) over (order by n.place) as weight_to, count(*) over () as count,
        sum(n.weight) filter (where n.place <= ${most}) over () as page_weight
      from (
        select m.*, row_number() over (order by ${order}) as place, ${textBytes} + ${restBytes} as weight
        from (${rows(`${most}::integer + 1`)}) m order by ${order} limit ${most}::integer + 1
      ) n
    ) m ${itsInbox}
    where m.place = 1
      or (m.place <= ${most} and case when ${mayBeFewer} then m.weight_to else m.page_weight end <= ${maxAnswerBytes})
    order by m.place`,
    [...values, limit, orFewer],
  )
  const fitting = found.slice(0, countFitting(found))
  const count = found[0]?.count ?? 0
  if (!orFewer && fitting.length < Math.min(limit, count)) throw new ServiceError('page_too_large')
  const page = fitting.map(({ weight, count, ...row }) => cutToFit<MessageRow>(row))
  return { page, last: page.length < count ? (page.at(-1) ?? null) : null }
}

export interface MessageFilter {
  inboxId: InboxId
  direction: string | null
  from: string | null
  /** Bounds of the id: ids begin with their milliseconds. */
  sinceId: string | null
  untilId: string | null
  /** What `writeQuery` made of the words that must occur. */
  words: string | null
}

/** The inbox's messages, newest first, after `beforeId`. */
export async function listMessages(
  db: Queryable,
  filter: MessageFilter,
  beforeId: string | null,
  size: PageSize,
): Promise<MessagePage> {
  if (filter.words !== null) return await searchMessages(db, filter, filter.words, beforeId, size)
  const { inboxId, sinceId, untilId, direction, from } = filter
  const directions = direction === null ? ['inbound', 'outbound'] : [direction]
  const rows = (most: string) =>
    directions.map((one) => `(${pickOf(one, from)} limit ${most})`).join(' union all ')
  const values = [inboxId, sinceId, untilId, beforeId, ...(from === null ? [] : [from])]
  return await readPage(db, { rows, order: 'm.id desc' }, values, size)
}

/** Each direction has its own part of an index; and what an inbox sends is from its own address, or from no other. */
function pickOf(direction: string, from: string | null): string {
  if (from === null || direction === 'outbound') {
    const isOwn =
      from === null
        ? ''
        : `$5 = (select lower(b.local_part || '@' || b.domain) from inbox b where b.id = $1) and`
    const stretch = stretchOf(['m.inbox_id', 'm.direction', 'm.id'], ['$1::text', `'${direction}'`], idBounds)
    return `select m.* from message m where ${isOwn} ${stretch}`
  }
  const columns = ['m.inbox_id', `left(lower(m.sender->>'email'), 400)`, 'm.id'] as const
  return `select m.* from message m where m.direction = 'inbound' and ${stretchOf(columns, ['$1::text', '$5'], idBounds)}`
}

const idBounds = [`coalesce($2, 'msg_')`, `least(coalesce($3, 'msg_g'), coalesce($4, 'msg_g'))`] as const

/** The same by the index of words, which knows only what has been indexed since it was filed. */
async function searchMessages(
  db: Queryable,
  { inboxId, direction, from, sinceId, untilId }: MessageFilter,
  words: string,
  beforeId: string | null,
  size: PageSize,
): Promise<MessagePage> {
  const rows = (most: string) => `select m.* from message m
    where m.id = any(array(select search_messages($1, $2, $3, $4, coalesce($5, 'msg_'),
      least(coalesce($6, 'msg_g'), coalesce($7, 'msg_g')), ${most})))`
  const values = [inboxId, words, direction, from, sinceId, untilId, beforeId]
  return await readPage(db, { rows, order: 'm.id desc' }, values, size)
}

/** The inbox's messages, oldest first, after the number `afterSeq`, which is given under the inbox's lock. */
export async function exportMessages(
  db: Queryable,
  inboxId: InboxId,
  afterSeq: number,
  size: PageSize,
): Promise<MessagePage> {
  return await readPage(db, followingIn('inbox_id'), [inboxId, afterSeq], size)
}

function followingIn(column: 'inbox_id' | 'thread_id'): Picked {
  const rows = (most: string) =>
    `select m.* from message m where m.${column} = $1 and m.seq > $2 order by m.seq limit ${most}`
  return { rows, order: 'm.seq' }
}

export interface ThreadRow {
  id: ThreadId
  organizationId: OrganizationId
  inboxId: InboxId
  subject: string
  participants: string[]
  messageCount: number
  lastMessageAt: Date
}

const threadColumns = `t.id, t.organization_id as "organizationId", t.inbox_id as "inboxId", t.subject, t.participants,
  t.message_count as "messageCount", t.last_message_at as "lastMessageAt"`

export async function findThread(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<ThreadRow | null> {
  const [row] = await db.query<ThreadRow>(
    `select ${threadColumns} from thread t join inbox b on b.id = t.inbox_id and b.status = 'active'
    where t.id = $2 and t.organization_id = $1`,
    [organizationId, id],
  )
  return row ?? null
}

/** The thread's messages, oldest first, after the number `afterSeq`. */
export async function listThreadMessages(
  db: Queryable,
  threadId: ThreadId,
  afterSeq: number,
  size: PageSize,
): Promise<MessagePage> {
  return await readPage(db, followingIn('thread_id'), [threadId, afterSeq], size)
}

/** The inbox's threads by their last message, newest first, after the given place. */
export async function listThreads(
  db: Queryable,
  inboxId: InboxId,
  before: { lastMessageAt: Date; id: string } | null,
  limit: number,
): Promise<ThreadRow[]> {
  return await db.query<ThreadRow>(
    `select ${threadColumns} from thread t
    where t.inbox_id = $1 and ($2::timestamptz is null or (t.last_message_at, t.id) < ($2, $3))
    order by t.last_message_at desc, t.id desc limit $4`,
    [inboxId, before?.lastMessageAt ?? null, before?.id ?? null, limit],
  )
}

/**
 * Removes the message's row. Its thread goes with the last one, and else knows no more than what is left of it. The inbox
 * is locked.
 */
export async function deleteMessageRow(
  tx: Tx,
  message: { id: MessageId; threadId: ThreadId },
): Promise<void> {
  await tx.query('delete from message where id = $1', [message.id])
  await tx.query(
    `update thread t set message_count = n.messages, last_message_at = coalesce(n.last, t.last_message_at),
      subject = coalesce(n.subject, ''), participants = join_participants('{}', n.participants)
    from (
      select count(distinct m.id) as messages, max(m.created_at) as last, (array_agg(m.subject order by m.seq))[1] as subject,
        array_agg(a.mailbox->>'email' order by m.seq, a.place) as participants
      from message m
      left join lateral jsonb_array_elements(
        jsonb_build_array(m.sender) || (m.recipients->'to') || coalesce(m.recipients->'cc', '[]')
      ) with ordinality a(mailbox, place) on a.mailbox->>'email' <> ''
      where m.thread_id = $1
    ) n where t.id = $1`,
    [message.threadId],
  )
  await tx.query('delete from thread where id = $1 and message_count = 0', [message.threadId])
}

/** A received mail as it becomes a message. */
export interface FiledMessage
  extends Pick<MessageRow, 'internetMessageId' | 'inReplyTo' | 'referenceIds' | 'sender' | 'recipients'>,
    Pick<MessageRow, 'subject' | 'text' | 'html' | 'attachments'> {
  id: string
  inboxId: string
  organizationId: string
  rawId: string
  threadId: ThreadId
  /** The nearest first. */
  ancestors: string[]
  participants: string[]
  /** Null where it is the text without the white space around it. */
  extractedText: string | null
  security: SecurityRecord
  note: string | null
  receivedAt: Date
}

const mostParticipants = 500

/** Files the mails whose spool rows this transaction holds; answers the ids that became messages. */
export async function fileMessages(tx: Tx, filed: FiledMessage[], at: Date): Promise<string[]> {
  const mails = filed.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const named = new Arguments({
    at,
    inboxes: column('text', [...new Set(pick(mails, 'inboxId'))]),
    ids: column('text', pick(mails, 'id')),
    in_inboxes: column('text', pick(mails, 'inboxId')),
    orgs: column('uuid', pick(mails, 'organizationId')),
    raw_ids: column('uuid', pick(mails, 'rawId')),
    threads: column('text', pick(mails, 'threadId')),
    internet_ids: column('text', pick(mails, 'internetMessageId')),
    parents: column('text', pick(mails, 'inReplyTo')),
    ref_lines: column('text', lines(pick(mails, 'referenceIds'))),
    candidate_lines: column('text', lines(pick(mails, 'ancestors'))),
    senders: column('jsonb', pick(mails, 'sender')),
    visible_recipients: column('jsonb', pick(mails, 'recipients')),
    participant_lines: column('text', lines(pick(mails, 'participants').map(firstParticipants))),
    subjects: column('text', pick(mails, 'subject')),
    bodies: column('text', pick(mails, 'text')),
    htmls: column('text', pick(mails, 'html')),
    extracts: column('text', pick(mails, 'extractedText')),
    attachment_lists: column('jsonb', pick(mails, 'attachments')),
    securities: column('jsonb', pick(mails, 'security')),
    notes: column('text', pick(mails, 'note')),
    times: column('timestamptz', pick(mails, 'receivedAt')),
    announcements: column(
      'uuid',
      mails.map(() => newUuid()),
    ),
  })
  const rows = await tx.query<{ id: string }>(
    `select file_messages as id from file_messages(${named.of()})`,
    named.values,
  )
  return rows.map(({ id }) => id)
}

/** Each once, as `join_participants` has them. */
function firstParticipants(emails: string[]): string[] {
  return [...new Set(emails)].slice(0, mostParticipants)
}
