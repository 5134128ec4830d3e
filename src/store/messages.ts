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
import { column, lines, pick } from './columns.ts'
import type { Queryable, Tx } from './db.ts'
import type { SubmissionStatus } from './status.ts'

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
  /** Where its bytes stand in the raw row, and how; known once it is scanned, and never shown. */
  place?: { start: number; length: number; encoding: 'base64' | 'quoted-printable' | 'none' }
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
  coalesce(${body('m.extracted_text')}, btrim(${body('m.text')}, E' \\t\\r\\n')) as "extractedText", m.metadata, m.purpose,
  m.attachments, m.security, m.submission_id as "submissionId", s.status as "submissionStatus",
  s.failure_code as "failureCode", m.raw_id as "rawId", m.created_at as "createdAt",
  greatest(m.updated_at, s.updated_at) as "updatedAt"`

const columns = columnsWith((column) => column)

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
  return row ?? null
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

/** Text that a page holds at most; a page of one message holds whatever that has. */
const maxPageBytes = 16 << 20

/**
 * Reads what `where` picks of `message m`, at most `limit`, the last of which is only looked at to see whether there is
 * more. Weighs the page before it is read: one that is too large is refused, for it would take the memory of everybody.
 */
async function readPage(
  db: Queryable,
  picked: { where: string; order: string },
  values: unknown[],
  limit: number,
): Promise<MessageRow[]> {
  const place = (n: number) => `$${values.length + n}`
  const rows = await db.query<MessageRow & { isTooLarge: boolean }>(
    `select ${columns}, m.bytes > ${place(2)}::bigint and ${place(1)} > 2 as "isTooLarge" from (
      select n.*, sum(n.text_bytes) filter (where n.place < ${place(1)}) over () as bytes from (
        select m.*, row_number() over (order by ${picked.order}) as place,
          octet_length(m.text) + coalesce(octet_length(m.html), 0) + coalesce(octet_length(m.extracted_text), 0) as text_bytes
        from message m where ${picked.where} order by ${picked.order} limit ${place(1)}
      ) n
    ) m ${itsInbox}
    where m.place = 1 or m.bytes <= ${place(2)}::bigint or ${place(1)} <= 2 order by m.place`,
    [...values, limit, maxPageBytes],
  )
  if (rows[0]?.isTooLarge) throw new ServiceError('page_too_large')
  return rows.map(({ isTooLarge, ...row }) => row)
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
  limit: number,
): Promise<MessageRow[]> {
  if (filter.words !== null) return await searchMessages(db, filter, filter.words, beforeId, limit)
  const where = `m.inbox_id = $1 and ($2::text is null or m.direction = $2) and ($3::text is null or lower(m.sender->>'email') = $3)
    and m.id >= coalesce($4, 'msg_') and m.id < least(coalesce($5, 'msg_g'), coalesce($6, 'msg_g'))`
  const values = [filter.inboxId, filter.direction, filter.from, filter.sinceId, filter.untilId, beforeId]
  return await readPage(db, { where, order: 'm.id desc' }, values, limit)
}

/** The same by the index of words, which knows only what has been indexed since it was filed. */
async function searchMessages(
  db: Queryable,
  { inboxId, direction, from, sinceId, untilId }: MessageFilter,
  words: string,
  beforeId: string | null,
  limit: number,
): Promise<MessageRow[]> {
  const where = `m.id = any(array(select search_messages($1, $2, $3, $4, coalesce($5, 'msg_'),
    least(coalesce($6, 'msg_g'), coalesce($7, 'msg_g')), $8)))`
  const values = [inboxId, words, direction, from, sinceId, untilId, beforeId, limit]
  return await readPage(db, { where, order: 'm.id desc' }, values, limit)
}

/** The inbox's messages, oldest first, after the number `afterSeq`, which is given under the inbox's lock. */
export async function exportMessages(
  db: Queryable,
  inboxId: InboxId,
  afterSeq: number,
  limit: number,
): Promise<MessageRow[]> {
  return await readPage(
    db,
    { where: 'm.inbox_id = $1 and m.seq > $2', order: 'm.seq' },
    [inboxId, afterSeq],
    limit,
  )
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
  limit: number,
): Promise<MessageRow[]> {
  return await readPage(
    db,
    { where: 'm.thread_id = $1 and m.seq > $2', order: 'm.seq' },
    [threadId, afterSeq],
    limit,
  )
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

/** Purges up to `limit` messages of one deleted inbox, and at last its threads; null when no inbox is left to purge. */
export async function purgeMessages(tx: Tx, limit: number): Promise<{ rawIds: string[] } | null> {
  const [inbox] = await tx.query<{ id: InboxId }>(
    `select id from inbox where status = 'deleted' and not purged limit 1 for update skip locked`,
  )
  if (!inbox) return null
  const rows = await tx.query<{ rawId: string | null }>(
    `delete from message where id in (select id from message where inbox_id = $1 limit $2) returning raw_id as "rawId"`,
    [inbox.id, limit],
  )
  if (rows.length < limit) {
    await tx.query('delete from thread where inbox_id = $1', [inbox.id])
    await tx.query('delete from search_part where inbox_id = $1', [inbox.id])
    await tx.query('update inbox set purged = true where id = $1', [inbox.id])
  }
  return { rawIds: rows.flatMap(({ rawId }) => rawId ?? []) }
}

/** What `file_messages` takes for each mail; see the migration. */
export interface FiledMessage {
  id: string
  inbox: string
  org: string
  raw: string
  thread: ThreadId
  mid: string
  irt: string | null
  refs: string[]
  /** The nearest ancestor first. */
  candidates: string[]
  sender: MailboxValue
  rcpts: MessageRow['recipients']
  participants: string[]
  subject: string
  body: string
  html: string | null
  /** Null where it is the text without the white space around it. */
  extracted: string | null
  attachments: AttachmentEntry[]
  security: SecurityRecord
  note: string | null
  receivedAt: Date
}

const mostParticipants = 500

const filing = `select file_messages as id from file_messages(${Array.from({ length: 23 }, (_, i) => `$${i + 1}`).join(', ')})`

/** Files the mails whose spool rows this transaction holds; answers the ids that became messages. */
export async function fileMessages(tx: Tx, filed: FiledMessage[], at: Date): Promise<string[]> {
  const mails = filed.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const rows = await tx.query<{ id: string }>(filing, [
    at,
    column('text', [...new Set(pick(mails, 'inbox'))]),
    column('text', pick(mails, 'id')),
    column('text', pick(mails, 'inbox')),
    column('uuid', pick(mails, 'org')),
    column('uuid', pick(mails, 'raw')),
    column('text', pick(mails, 'thread')),
    column('text', pick(mails, 'mid')),
    column('text', pick(mails, 'irt')),
    column('text', lines(pick(mails, 'refs'))),
    column('text', lines(pick(mails, 'candidates'))),
    column('jsonb', pick(mails, 'sender')),
    column('jsonb', pick(mails, 'rcpts')),
    column('text', lines(pick(mails, 'participants').map(firstParticipants))),
    column('text', pick(mails, 'subject')),
    column('text', pick(mails, 'body')),
    column('text', pick(mails, 'html')),
    column('text', pick(mails, 'extracted')),
    column('jsonb', pick(mails, 'attachments')),
    column('jsonb', pick(mails, 'security')),
    column('text', pick(mails, 'note')),
    column('timestamptz', pick(mails, 'receivedAt')),
    column(
      'uuid',
      mails.map(() => newUuid()),
    ),
  ])
  return rows.map(({ id }) => id)
}

/** Each once, as `join_participants` has them. */
function firstParticipants(emails: string[]): string[] {
  return [...new Set(emails)].slice(0, mostParticipants)
}
