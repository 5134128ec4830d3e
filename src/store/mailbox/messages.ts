// Messages and threads: reading them, deleting messages, and filing received ones.
import type { AuthResult } from '../../base/auth-result.ts'
import {
  type InboxId,
  type MessageId,
  newUuid,
  type OrganizationId,
  type SubmissionId,
  type ThreadId,
} from '../../base/ids.ts'
import { Arguments } from '../../postgres/arguments.ts'
import { column, columnOf, lines, pick, releaseBytes } from '../../postgres/columns.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { countGone } from '../accounts/usage.ts'
import { LongText, readLongText } from '../long-text.ts'
import type { SubmissionStatus } from '../status.ts'
import type { Claim } from '../work.ts'
import { isCut, isLong, maxCutLength } from './message-weight.ts'

export interface MailboxValue {
  email: string
  name?: string
}

/** An attachment's entry. The bytes of outbound attachments are in the message's raw row, one after the other. */
export interface AttachmentEntry {
  filename: string
  contentType: string
  size: number
  disposition: 'attachment' | 'inline'
  contentId: string | null
  sha256: string
  scanState: 'unscanned' | 'clean' | 'infected' | 'failed'
  /** Position and encoding of its bytes in the raw row. An outbound attachment has it only after its scan. Never shown. */
  span?: { start: number; length: number; encoding: 'base64' | 'quoted-printable' | 'uuencode' | 'none' }
}

/** The spam engine's result for a received mail. */
export interface SpamRecord {
  score: number
  action: string
  symbols: string[]
}

export interface SecurityRecord extends MailFindings {
  /** The envelope as received, for the trace header. */
  envelope: { from: string; recipients: string[]; protocol: string; receivedBy: string }
  smtp: { remoteIp: string; helo: string; tls: { encrypted: boolean; protocol: string; cipher: string } }
  /** Absent in mail that could not be parsed, or was filed before these checks existed. */
  content?: {
    hiddenText: number
    invisibleCharacters: number
    bidiOverrides: number
    textDiffersFromHtml: boolean
  }
}

/** The findings of the checks of a received mail. */
export interface MailFindings {
  /** RFC 8601 results in short; `not_evaluated` if there was no check. */
  authentication: { spf: string; dkim: string; dmarc: string }
  /** The result of each method, as Authentication-Results shows it. Absent in mail filed before there were checks. */
  methods?: AuthMethod[]
  /** Block lists that list the client. Absent if no queried list has it. */
  listedBy?: string[]
  /** Absent if no spam engine was asked, or none answered. */
  spam?: SpamRecord
}

/** One method of RFC 8601: its result, the reason, and the properties checked. */
export interface AuthMethod {
  method: string
  result: AuthResult
  reason?: string
  /** The term of the sender's SPF record that matched. */
  mechanism?: string
  /** Type, property and value, such as `['smtp', 'mailfrom', 'example.com']`. */
  properties: [string, string, string][]
}

/** A message. With the default `Text`, the texts of a long message are not read yet. */
export interface MessageRow<Text = string | LongText> {
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
  text: Text
  html: Text | null
  extractedText: Text | null
  /** Whether its texts are too long for any answer, so that only their beginnings are here. */
  isCut: boolean
  metadata: Record<string, string | number | boolean | null>
  purpose: string
  attachments: AttachmentEntry[]
  security: SecurityRecord | null
  /** Whether a program wrote it; false for outbound messages. */
  isAutomatic: boolean
  submissionId: SubmissionId | null
  submissionStatus: SubmissionStatus | null
  failureCode: string | null
  rawId: string | null
  createdAt: Date
  updatedAt: Date
}

/** A received message always has an extracted text: the trimmed text, if the column is null. */
const extractedText = `coalesce(m.extracted_text, btrim(m.text, E' \\t\\r\\n'))`
/** The same as bytes, because trimming bytes is fast and trimming a long text is not. */
const extractedBytes = `coalesce(convert_to(m.extracted_text, 'UTF8'), btrim(convert_to(m.text, 'UTF8'), '\\x20090d0a'))`

/** The columns of a `MessageRow` of `message m`. `text` wraps each text column. */
const columnsWith = (text: (column: string) => string) =>
  `m.id, m.organization_id as "organizationId", m.inbox_id as "inboxId", m.thread_id as "threadId", m.seq,
  m.direction, m.internet_message_id as "internetMessageId", m.in_reply_to as "inReplyTo",
  m.reference_ids as "referenceIds", m.sender, m.recipients, m.subject,
  ${text('m.text')} as text, ${text('m.html')} as html,
  case when m.direction = 'inbound' then ${text(extractedText)} end as "extractedText",
  m.metadata, m.purpose, m.attachments, m.security, m.automatic as "isAutomatic",
  m.submission_id as "submissionId",
  coalesce(s.status, m.settled_as) as "submissionStatus", coalesce(s.failure_code, m.settled_code) as "failureCode",
  m.raw_id as "rawId", m.created_at as "createdAt", greatest(m.updated_at, s.updated_at) as "updatedAt"`

/** The columns of a `MessageRow` of `message m`, and whether its texts are long, so that `readMessages` reads pieces. */
export const messageColumns = `${columnsWith((column) => `case when ${isLong} then left(${column}, 0) else ${column} end`)},
  ${isLong} as "isLong", ${isCut} as "isCut"`

// Mail of a deleted inbox disappears from every read at once, although it is purged later.
export const itsInbox = `join inbox b on b.id = m.inbox_id and b.status = 'active' left join submission s on s.id = m.submission_id`

export async function findMessage(
  db: Queryable,
  organizationId: OrganizationId,
  id: string,
): Promise<MessageRow | null> {
  const [row] = await readMessages(
    db,
    `select ${messageColumns} from message m ${itsInbox} where m.id = $2 and m.organization_id = $1`,
    [organizationId, id],
  )
  return row ?? null
}

/** Returns the rows of a statement that selects `messageColumns`. */
export async function readMessages<Row extends MessageRow>(
  db: Queryable,
  sql: string,
  values: unknown[],
): Promise<Row[]> {
  const rows = await db.query<Row & { isLong: boolean }>(sql, values)
  return rows.map((row) => (row.isLong ? withLongTexts(db, row) : row))
}

function withLongTexts<Row extends MessageRow>(db: Queryable, row: Row): Row {
  const long = (column: string, bytes = `convert_to(${column}, 'UTF8')`) => {
    const cut = `convert_to(left(${column}, ${maxCutLength}), 'UTF8')`
    return new LongText(() => readLongText(db, row.id, row.isCut ? cut : bytes))
  }
  return {
    ...row,
    text: long('m.text'),
    html: row.html === null ? null : long('m.html'),
    extractedText: row.extractedText === null ? null : long(extractedText, extractedBytes),
  }
}

/** Finds messages of any organization, their texts cut to `maxLength` characters. Skips deleted messages. */
export async function findMessagesCut(
  db: Queryable,
  ids: readonly string[],
  maxLength: number,
): Promise<MessageRow<string>[]> {
  return await db.query<MessageRow<string>>(
    `select ${columnsWith((column) => `left(${column}, $2)`)}, false as "isCut" from message m ${itsInbox} where m.id = any($1)`,
    [ids, maxLength],
  )
}

/** Finds the nearest of these internet message ids, the nearest first, that a message of the inbox has. */
export async function findAncestor(
  db: Queryable,
  inboxId: string,
  internetIds: readonly string[],
): Promise<{ id: MessageId; threadId: ThreadId } | null> {
  const [row] = await db.query<{ id: MessageId; threadId: ThreadId }>(
    `select m.id, m.thread_id as "threadId" from unnest($2::text[]) with ordinality c(id, nearness) cross join lateral (
      select id, thread_id from message where inbox_id = $1 and internet_message_id = c.id order by seq limit 1) m
    order by c.nearness limit 1`,
    [inboxId, internetIds],
  )
  return row ?? null
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

/** Lists the inbox's threads by their last message, newest first, after `before`. */
export async function listThreads(
  db: Queryable,
  inboxId: InboxId,
  before: { lastMessageAt: Date; id: string } | null,
  limit: number,
): Promise<ThreadRow[]> {
  return await db.query<ThreadRow>(
    `select ${threadColumns} from thread t
    where t.inbox_id = $1 and (t.last_message_at, t.id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3, ''))
    order by t.last_message_at desc, t.id desc limit $4`,
    [inboxId, before?.lastMessageAt ?? null, before?.id ?? null, limit],
  )
}

/** Returns the message's number in the inbox's order of filing, also after its deletion; null if the inbox never had it. */
export async function findSeq(db: Queryable, inboxId: InboxId, messageId: string): Promise<number | null> {
  const [row] = await db.query<{ seq: number }>(
    `select m.seq from message m where m.id = $2 and m.inbox_id = $1
    union all select t.seq from message_tombstone t where t.message_id = $2 and t.inbox_id = $1 limit 1`,
    [inboxId, messageId],
  )
  return row?.seq ?? null
}

/**
 * Deletes up to `limit` tombstones of messages deleted before `before`, from `after` on. Returns the time of the last one
 * deleted, or null if there are no more.
 */
export async function deleteTombstones(
  tx: Tx,
  { after, before }: { after: Date | null; before: Date },
  limit: number,
): Promise<Date | null> {
  const rows = await tx.query<{ at: Date }>(
    `delete from message_tombstone where message_id = any(array(
      select message_id from message_tombstone where deleted_at < $1 and deleted_at >= $3 order by deleted_at limit $2))
    returning deleted_at as at`,
    [before, limit, after ?? new Date(0)],
  )
  if (rows.length < limit) return null
  return rows.reduce((last, { at }) => (at > last ? at : last), rows[0]!.at)
}

/**
 * Removes messages and leaves tombstones with their numbers. Recomputes their threads from the messages left, and deletes
 * empty threads. The caller has locked the inboxes.
 */
export async function deleteMessageRows(
  tx: Tx,
  messages: readonly { id: MessageId; threadId: ThreadId }[],
  at: Date,
): Promise<void> {
  const threads = [...new Set(messages.map(({ threadId }) => threadId))]
  await tx.query(
    `with gone as (
      delete from message where id = any($1) returning id, organization_id, inbox_id, seq, direction, raw_id
    ), ${countGone}
    insert into message_tombstone (message_id, organization_id, inbox_id, seq, deleted_at)
    select g.id, g.organization_id, g.inbox_id, g.seq, $2 from gone g`,
    [messages.map(({ id }) => id), at],
  )
  await tx.query(
    `update thread t set message_count = n.messages, last_message_at = coalesce(n.last, t.last_message_at),
      subject = coalesce(n.subject, ''), participants = join_participants('{}', n.participants)
    from unnest($1::text[]) w(id) cross join lateral (
      select count(distinct m.id) as messages, max(m.created_at) as last, (array_agg(m.subject order by m.seq))[1] as subject,
        array_agg(a.mailbox->>'email' order by m.seq, a.ordinal) as participants
      from message m
      left join lateral jsonb_array_elements(
        jsonb_build_array(m.sender) || (m.recipients->'to') || coalesce(m.recipients->'cc', '[]')
      ) with ordinality a(mailbox, ordinal) on a.mailbox->>'email' <> ''
      where m.thread_id = w.id
    ) n where t.id = w.id`,
    [threads],
  )
  await tx.query('delete from thread where id = any($1) and message_count = 0', [threads])
}

/** A received mail as it becomes a message. */
export interface FiledMessage
  extends Pick<
      MessageRow<string>,
      'internetMessageId' | 'inReplyTo' | 'referenceIds' | 'sender' | 'recipients'
    >,
    Pick<MessageRow<string>, 'subject' | 'attachments' | 'isAutomatic'> {
  id: string
  inboxId: string
  organizationId: string
  rawId: string
  threadId: ThreadId
  /** The nearest ancestor first. */
  ancestors: string[]
  participants: string[]
  /** A long text is given as UTF-8 bytes, and so is `html`. */
  text: string | Uint8Array
  html: string | Uint8Array | null
  /** Null if it is the text without surrounding white space. */
  extractedText: string | null
  security: SecurityRecord
  note: string | null
  receivedAt: Date
}

const maxParticipants = 500

/** Files the mails whose spool rows this claim still holds; returns the ids that became messages. */
export async function fileMessages(
  tx: Tx,
  { owner, until }: Claim,
  filed: FiledMessage[],
  at: Date,
): Promise<string[]> {
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
    automatics: column('boolean', pick(mails, 'isAutomatic')),
    notes: column('text', pick(mails, 'note')),
    times: column('timestamptz', pick(mails, 'receivedAt')),
    announcements: columnOf('uuid', mails, () => newUuid()),
    owner,
    until,
  })
  const rows = await tx.query<{ id: string }>(
    `select file_messages as id from file_messages(${named.of()})`,
    named.values,
  )
  releaseBytes(named.values)
  return rows.map(({ id }) => id)
}

/**
 * Returns each address once, as `join_participants` does. A call of that costs the database 9 µs per mail (2 participants,
 * batches of 128).
 */
function firstParticipants(emails: string[]): string[] {
  return [...new Set(emails)].slice(0, maxParticipants)
}
