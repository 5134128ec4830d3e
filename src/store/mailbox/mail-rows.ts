// Rows of the dashboard's mail lists: a conversation with its newest message, or a message that a search found.
import type { InboxId, MessageId, OrganizationId, ThreadId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'
import { organizationInboxes } from './inboxes.ts'
import type { MailboxValue } from './messages.ts'

export interface MailRow {
  threadId: ThreadId
  messageId: MessageId
  inboxId: InboxId
  /** The address of the inbox. */
  address: string
  subject: string
  direction: 'inbound' | 'outbound'
  sender: MailboxValue
  /** At most the first five. */
  to: MailboxValue[]
  /** The first characters of the message's new text. */
  snippet: string
  hasFiles: boolean
  /** The messages of the conversation; 1 for a found message. */
  messageCount: number
  at: Date
}

export interface MailOwner {
  organizationId: OrganizationId
  /** Null: all inboxes of the organization. */
  inboxIds: readonly InboxId[] | null
}

const snippetLength = 200
/** A conversation has the mark of attachments if one of this many newest messages has a file. */
const filesWithin = 10

/** A row shows one line of each. A stranger's mail may have 1,000 recipients and names of 256 KiB. */
const [subjectLength, nameLength, maxRecipients] = [500, 200, 5]

const shortMailbox = (mailbox: string) =>
  `jsonb_strip_nulls(jsonb_build_object('email', ${mailbox}->'email', 'name', left(${mailbox}->>'name', ${nameLength})))`
const messageColumns = `m.id as "messageId", m.direction, ${shortMailbox('m.sender')} as sender, (
    select coalesce(jsonb_agg(${shortMailbox('r.mailbox')} order by r.n), '[]')
    from jsonb_array_elements(m.recipients->'to') with ordinality r(mailbox, n) where r.n <= ${maxRecipients}
  ) as "to", left(coalesce(nullif(m.extracted_text, ''), m.text), ${snippetLength}) as snippet`
const isWithFile = `@? '$[*] ? (@.disposition == "attachment")'`

/** The inbox's threads after the position `$3`, `$4`, by their last message, newest first. Comparing rows needs the index. */
const threadsOf = (columns: string, limit: string) =>
  `select ${columns} from thread t where t.inbox_id = b.id
    and (t.last_message_at, t.id) < (coalesce($3::timestamptz, 'infinity'), coalesce($4, ''))
    order by t.last_message_at desc, t.id desc limit ${limit}`

function inboxesOf(ids: MailOwner['inboxIds']): string {
  if (ids === null) return organizationInboxes('$2::text[] is null')
  return `select * from inbox b where b.id = any($2) and b.organization_id = $1 and b.status = 'active'`
}

/**
 * Lists the conversations of the inboxes by their last message, newest first, after `before`. Reads one index entry of each
 * inbox, and then the conversations of at most `limit` inboxes: only those can be on the page.
 */
export async function listConversations(
  db: Queryable,
  { organizationId, inboxIds }: MailOwner,
  before: { at: Date; id: string } | null,
  limit: number,
): Promise<MailRow[]> {
  return await db.query<MailRow>(
    `select t.id as "threadId", t.inbox_id as "inboxId", t.address, left(t.subject, ${subjectLength}) as subject, t.message_count as "messageCount",
      t.last_message_at as at, ${messageColumns}, exists (
        select from (
          select f.attachments from message f where f.thread_id = t.id order by f.seq desc limit ${filesWithin}
        ) f where f.attachments ${isWithFile}) as "hasFiles"
    from (
      select t.*, b.local_part || '@' || b.domain as address
      from (
        select b.* from (${inboxesOf(inboxIds)}) b cross join lateral (${threadsOf('t.last_message_at, t.id as thread_id', '1')}) n
        order by n.last_message_at desc, n.thread_id desc limit $5
      ) b cross join lateral (${threadsOf('t.*', '$5')}) t
      order by t.last_message_at desc, t.id desc limit $5
    ) t cross join lateral (select * from message m where m.thread_id = t.id order by m.seq desc limit 1) m
    order by t.last_message_at desc, t.id desc`,
    [organizationId, inboxIds, before?.at ?? null, before?.id ?? null, limit],
  )
}

/** Reads the rows of messages, newest first. Leaves out deleted messages. */
export async function readMailRows(db: Queryable, ids: readonly MessageId[]): Promise<MailRow[]> {
  return await db.query<MailRow>(
    `select m.thread_id as "threadId", m.inbox_id as "inboxId", b.local_part || '@' || b.domain as address,
      left(m.subject, ${subjectLength}) as subject,
      1 as "messageCount", m.created_at as at, ${messageColumns}, m.attachments ${isWithFile} as "hasFiles"
    from message m join inbox b on b.id = m.inbox_id and b.status = 'active'
    where m.id = any($1) order by m.id desc`,
    [ids],
  )
}
