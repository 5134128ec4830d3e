// The words of messages: what is not indexed yet, storing it, and the queries that find it.
import type { MessageId } from '../base/ids.ts'
import type { Queryable, Tx } from './db.ts'
import type { AttachmentEntry, MailboxValue, MessageRow } from './messages.ts'
import type { OutboxPlace } from './outbox.ts'

/** A row of the outbox, the messages that it tells of for the first time, and where the index stood when it was read. */
export interface NewMessages extends OutboxPlace {
  messages: MessageId[]
  after: OutboxPlace
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

/** The index is written by whoever holds this until the transaction ends; nothing is written for it. */
export async function claimIndex(tx: Tx): Promise<boolean> {
  // 0x77726473 is "wrds".
  const [row] = await tx.query<{ claimed: boolean }>(
    'select pg_try_advisory_xact_lock(2003985523, 0) as claimed',
  )
  return row!.claimed
}

/** The next rows of the outbox behind the index's place. */
export async function findNewMessages(tx: Tx, rows: number): Promise<NewMessages[]> {
  const found = await tx.query<Omit<NewMessages, 'after'> & { afterXact: string; afterSeq: number }>(
    `select xact, seq, messages, after_xact as "afterXact", after_seq as "afterSeq" from find_new_messages($1)`,
    [rows],
  )
  return found.map(({ afterXact, afterSeq, ...row }) => ({
    ...row,
    after: { xact: afterXact, seq: afterSeq },
  }))
}

/** Begins new parts of inboxes where these messages need them; answers whether it did. See the migration. */
export async function addSearchParts(tx: Tx, ids: MessageId[]): Promise<boolean> {
  const [row] = await tx.query<{ added: number }>('select add_search_parts($1) as added', [ids])
  return row!.added > 0
}

/** Those of the messages that are there and not indexed, within bounds, and whether that is all; texts are cut. */
export async function readUnindexed(
  tx: Tx,
  ids: MessageId[],
  most: { messages: number; bytes: number; characters: number },
): Promise<{ messages: UnindexedMessage[]; isAll: boolean }> {
  const messages = await tx.query<UnindexedMessage & { waiting: number }>(
    'select id, prefix, subject, body, sender, recipients, attachments, waiting from read_unindexed($1, $2, $3, $4)',
    [ids, most.messages, most.bytes, most.characters],
  )
  return { messages, isAll: messages.length === (messages[0]?.waiting ?? 0) }
}

/** Stores the words of messages, each as a tsvector is written; passes over messages that are gone. */
export async function storeWords(tx: Tx, messages: { id: MessageId }[], vectors: string[]): Promise<void> {
  await tx.query('select index_messages($1, $2)', [messages.map(({ id }) => id), vectors])
}

/** All that the outbox tells up to this row is indexed. Nothing moves where the outbox was numbered anew meanwhile. */
export async function moveIndexPlace(tx: Tx, { xact, seq, after }: NewMessages): Promise<void> {
  await tx.query(
    `update outbox_cursor set xact = $1::xid8, seq = $2 where name = 'search' and xact = $3::xid8 and seq = $4`,
    [xact, seq, after.xact, after.seq],
  )
}

/** Moves what was stored into the index itself; until then each search looks through it. */
export async function settleIndex(db: Queryable): Promise<void> {
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
