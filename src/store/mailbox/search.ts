// The words of messages: what is not indexed yet, storing it, and the queries that find it.
import type { MessageId, OrganizationId } from '../../base/ids.ts'
import type { Tx, Writer } from '../../postgres/db.ts'
import type { AttachmentEntry, MailboxValue, MessageRow } from './messages.ts'

/** A message that waits to be indexed, by its place in its organization's line. */
export interface WaitingMessage {
  organizationId: OrganizationId
  ordinal: number
  id: MessageId
}

/** A message as it is searched; its words go behind `prefix`. */
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
 * The index is written by whoever holds this until the transaction ends, in the order of asking; nothing is written for it.
 * Returns whether it could be had in time.
 */
export async function claimIndex(tx: Tx, waitMs: number): Promise<boolean> {
  const [row] = await tx.query<{ claimed: boolean }>('select claim_words($1) as claimed', [waitMs])
  return row!.claimed
}

/** Has messages of searched inboxes wait of which the outbox tells for the first time; returns how many of its rows were read. */
export async function takeNewMessages(tx: Tx, max: { rows: number; items: number }): Promise<number> {
  const [row] = await tx.query<{ rows: number }>('select take_new_messages($1, $2) as rows', [
    max.rows,
    max.items,
  ])
  return row!.rows
}

/** The next of those that wait, of the organizations behind `behind` in turn; none only where nothing waits. */
export async function findSearchOrder(
  tx: Tx,
  behind: OrganizationId | null,
  wanted: number,
): Promise<WaitingMessage[]> {
  return await tx.query<WaitingMessage>(
    `select organization_id as "organizationId", ordinal, message_id as id from find_search_order($1, $2)`,
    [behind, wanted],
  )
}

/** Begins new parts of inboxes where these messages need them; returns whether it did. See the function. */
export async function addSearchParts(tx: Tx, ids: MessageId[]): Promise<boolean> {
  const [row] = await tx.query<{ added: number }>('select add_search_parts($1) as added', [ids])
  return row!.added > 0
}

/**
 * Reads as many of the first of them as the bounds allow, one at least: how many these are, and those of them that are there
 * and not indexed. Texts are cut.
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

/** Stores the words of messages, each as a tsvector is written; passes over messages that are gone. */
export async function storeWords(tx: Tx, messages: { id: MessageId }[], vectors: string[]): Promise<void> {
  await tx.query('select index_messages($1, $2)', [messages.map(({ id }) => id), vectors])
}

/** These wait no longer. */
export async function dropWaiting(tx: Tx, waiting: WaitingMessage[]): Promise<void> {
  await tx.query('select drop_waiting($1, $2)', [
    waiting.map(({ organizationId }) => organizationId),
    waiting.map(({ ordinal }) => ordinal),
  ])
}

/** Moves what was stored into the index itself; until then each search looks through it. */
export async function settleIndex(db: Writer): Promise<void> {
  await db.query(`select gin_clean_pending_list('message_search_words')`)
}

/** A word that is looked for, so many places behind the one before it in its phrase, or only its beginning. */
interface QueryTerm {
  word: string
  distance: number
  isPrefix: boolean
}

/** Phrases that must all occur, as `search_messages` takes them: a tsquery with a $ before each word. */
export function writeQuery(phrases: QueryTerm[][]): string {
  return phrases.map((phrase) => `(${phrase.map(writeTerm).join('')})`).join(' & ')
}

function writeTerm({ word, distance, isPrefix }: QueryTerm, index: number): string {
  return `${index > 0 ? ` <${distance}> ` : ''}'$${word}'${isPrefix ? ':*' : ''}`
}
