// The word index of messages: finding messages to index, storing their words, and writing search queries.
import type { MessageId, OrganizationId } from '../../base/ids.ts'
import type { Tx, Writer } from '../../postgres/db.ts'
import type { AttachmentEntry, MailboxValue, MessageRow } from './messages.ts'

/** A message that waits to be indexed, by its ordinal in its organization's queue. */
export interface WaitingMessage {
  organizationId: OrganizationId
  ordinal: number
  id: MessageId
}

/** A message to index. Each of its words is stored with `prefix` before it, which names the message's part. */
export interface UnindexedMessage {
  id: MessageId
  prefix: string
  subject: string
  body: string
  sender: MailboxValue
  recipients: MessageRow['recipients']
  attachments: AttachmentEntry[]
}

/**
 * Locks the index until the transaction ends, so that only this transaction writes it. Requests get the lock in their
 * order. Returns false after `waitMs` without it.
 */
export async function claimIndex(tx: Tx, waitMs: number): Promise<boolean> {
  const [row] = await tx.query<{ claimed: boolean }>('select claim_words($1) as claimed', [waitMs])
  return row!.claimed
}

/**
 * Reads new outbox rows, and queues their messages for indexing, if their inboxes are searched. Returns how many outbox
 * rows it read.
 */
export async function takeNewMessages(tx: Tx, max: { rows: number; items: number }): Promise<number> {
  const [row] = await tx.query<{ rows: number }>('select take_new_messages($1, $2) as rows', [
    max.rows,
    max.items,
  ])
  return row!.rows
}

/** Returns the next waiting messages, in round robin over organizations after `last`. Empty only if nothing waits. */
export async function findWaitingMessages(
  tx: Tx,
  last: OrganizationId | null,
  wanted: number,
): Promise<WaitingMessage[]> {
  return await tx.query<WaitingMessage>(
    `select organization_id as "organizationId", ordinal, message_id as id from find_waiting_messages($1, $2)`,
    [last, wanted],
  )
}

/** Begins new parts of the index that these messages need; returns whether there were any. See `add_search_parts`. */
export async function addSearchParts(tx: Tx, ids: MessageId[]): Promise<boolean> {
  const [row] = await tx.query<{ added: number }>('select add_search_parts($1) as added', [ids])
  return row!.added > 0
}

/**
 * Reads as many of the first messages as the bounds allow, at least one, with cut texts. Returns how many it read, and
 * those of them that exist and are not indexed.
 */
export async function readUnindexed(
  tx: Tx,
  ids: MessageId[],
  max: { bytes: number; characters: number },
): Promise<{ count: number; messages: UnindexedMessage[] }> {
  const rows = await tx.query<UnindexedMessage | { id: MessageId; prefix: null }>(
    'select id, prefix, subject, body, sender, recipients, attachments from read_unindexed($1, $2, $3)',
    [ids, max.bytes, max.characters],
  )
  return { count: rows.length, messages: rows.filter((row) => row.prefix !== null) }
}

/** Stores the words of messages, each a text in tsvector syntax. Skips deleted messages. */
export async function storeWords(tx: Tx, messages: { id: MessageId }[], vectors: string[]): Promise<void> {
  await tx.query('select index_messages($1, $2)', [messages.map(({ id }) => id), vectors])
}

/** Removes messages from the queue for indexing. */
export async function dropWaiting(tx: Tx, waiting: WaitingMessage[]): Promise<void> {
  await tx.query('select drop_waiting($1, $2)', [
    waiting.map(({ organizationId }) => organizationId),
    waiting.map(({ ordinal }) => ordinal),
  ])
}

/** Moves stored words from the pending list into the index itself. Until then each search scans that list. */
export async function settleIndex(db: Writer): Promise<void> {
  await db.query(`select gin_clean_pending_list('message_search_words')`)
}

/** A search term: a word, or only its beginning, `distance` words after the previous one of its phrase. */
interface QueryTerm {
  word: string
  distance: number
  isPrefix: boolean
}

/** Returns a query for phrases that must all occur, as `search_messages` takes it: a tsquery with a $ before each word. */
export function writeTsquery(phrases: QueryTerm[][]): string {
  return phrases.map((phrase) => `(${phrase.map(writeTerm).join('')})`).join(' & ')
}

function writeTerm({ word, distance, isPrefix }: QueryTerm, index: number): string {
  return `${index > 0 ? ` <${distance}> ` : ''}'$${word}'${isPrefix ? ':*' : ''}`
}
