// Extracts and stores the words of a few messages at a time: waiting ones, or the older ones of an inbox.
import type { InboxId, MessageId, OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { NoWords, type ParsePool } from '../../mail/parse-pool.ts'
import type { SearchedMail } from '../../mail/read/words.ts'
import { type Db, DbFault, type Tx } from '../../postgres/db.ts'
import { isTorn } from '../../postgres/read-untorn.ts'
import {
  addSearchParts,
  claimIndex,
  dropWaiting,
  findWaitingMessages,
  readUnindexed,
  storeWords,
  type UnindexedMessage,
  type WaitingMessage,
} from '../../store/mailbox/search.ts'
import { extendSearch, findOlder, noteOlder } from '../../store/mailbox/searched-inboxes.ts'

export interface IndexingDeps {
  db: Db
  log: Log
  parsePool: Pick<ParsePool, 'words'>
}

/** The bytes indexed at the beginning of a text, where its new content is. */
const maxTextBytes = 1 << 16
/**
 * Small enough to delay readers of the outbox, who wait for these writes, by only 20 to 40 ms. With 1 KB of text, PostgreSQL
 * spends 270 us per message in batches of 32, and 230 in batches of 128.
 */
export const maxAtOnce = 128
const max = { messages: maxAtOnce, bytes: 1 << 18, characters: maxTextBytes }
/** Messages per call to the parser, so that mail to be filed does not wait for long. */
const wordsAtOnce = 8
/** A part of an inbox's messages; see `search_messages`. */
const partMessages = 4_096

/** A source of messages to index, in its own order. */
interface Messages<Item extends { id: MessageId }> {
  /** The next messages. */
  find(tx: Tx, limit: number): Promise<Item[]>
  /** Writes the rows needed before these are indexed, or when there are none. Returns whether it did. */
  prepare(tx: Tx, items: Item[]): Promise<boolean>
  /** These have been read, and may be retried one by one from here on. */
  begin(items: Item[]): void
  /**
   * This message needs a torn page of the database, so it cannot be read now. Returns whether the next ones can be found
   * without it.
   */
  passOver(item: Item): boolean
  /** These are indexed, or never will be. */
  end(tx: Tx, items: Item[]): Promise<void>
}

/** The organization that was indexed last. The next one follows it in the order of ids. */
export interface OrganizationCursor {
  last: OrganizationId | null
}

/** Messages from the outbox, round robin over organizations. */
export function waitingMessages(cursor: OrganizationCursor): Messages<WaitingMessage> {
  return {
    find: (tx, limit) => findWaitingMessages(tx, cursor.last, limit),
    prepare: async (tx, items) => {
      const ids = items.map(({ id }) => id)
      return ids.length > 0 && (await addSearchParts(tx, ids))
    },
    begin: (items) => {
      // Every organization's first message comes before any second one, so the organization that appears last was last.
      cursor.last = [...new Set(items.map(({ organizationId }) => organizationId))].at(-1) ?? null
    },
    passOver: ({ organizationId }) => {
      cursor.last = organizationId
      return true
    },
    end: dropWaiting,
  }
}

/** The messages that an inbox had when it was first searched, newest first. */
export function olderMessages(inboxId: InboxId): Messages<{ id: MessageId }> {
  return {
    find: (tx, limit) => findOlder(tx, inboxId, limit),
    prepare: async (tx, items) => {
      if (items.length === 0) await extendSearch(tx, inboxId, partMessages)
      return false
    },
    begin: () => {},
    passOver: () => false,
    end: (tx, items) => noteOlder(tx, inboxId, items.at(-1)!.id),
  }
}

/**
 * Indexes a few messages. Returns how many were stored, or null if there are none. One node indexes at a time; others wait
 * up to `waitMs`. Messages that cannot be indexed are skipped, so that they never block the others. No search finds them.
 * A message that needs a torn page of the database waits, and blocks only its organization.
 */
export async function indexSome<Item extends { id: MessageId }>(
  deps: IndexingDeps,
  messages: Messages<Item>,
  { waitMs, atOnce = maxAtOnce }: { waitMs: number; atOnce?: number },
): Promise<number | null> {
  return await indexBatch(deps, messages, { ...max, messages: atOnce, waitMs }).catch(async (error) => {
    if (!isTheirs(error) && !isTorn(error)) throw error
    deps.log.warn({ err: error }, 'messages could not be indexed; retrying one by one')
    return await indexOneByOne(deps, messages, waitMs)
  })
}

/** One read: the items that fit, and the messages among them to index. */
interface Batch<Item> {
  items: Item[]
  messages: UnindexedMessage[]
}

async function indexBatch<Item extends { id: MessageId }>(
  { db, parsePool }: IndexingDeps,
  messages: Messages<Item>,
  bounds: typeof max & { waitMs: number },
  { onFound, onRead }: { onFound?(items: Item[]): void; onRead?(batch: Batch<Item>): void } = {},
): Promise<number | null> {
  return await db.transaction(async (tx) => {
    if (!(await claimIndex(tx, bounds.waitMs))) return null
    const found = await messages.find(tx, bounds.messages)
    onFound?.(found)
    // Committed separately: nothing may be written while words are extracted.
    if (await messages.prepare(tx, found)) return 0
    if (found.length === 0) return null
    const read = await readUnindexed(
      tx,
      found.map(({ id }) => id),
      bounds,
    )
    const batch = { items: found.slice(0, read.count), messages: read.messages }
    messages.begin(batch.items)
    onRead?.(batch)
    await store(tx, messages, batch, await makeVectors(parsePool, batch.messages))
    return batch.messages.length
  })
}

async function store<Item extends { id: MessageId }>(
  tx: Tx,
  { end }: Messages<Item>,
  { items, messages }: Batch<Item>,
  vectors: string[],
): Promise<void> {
  if (messages.length > 0) await storeWords(tx, messages, vectors)
  await end(tx, items)
}

async function makeVectors(
  parsePool: IndexingDeps['parsePool'],
  messages: UnindexedMessage[],
): Promise<string[]> {
  const vectors: string[] = []
  for (let at = 0; at < messages.length; at += wordsAtOnce)
    vectors.push(...(await parsePool.words(messages.slice(at, at + wordsAtOnce).map(describe))))
  return vectors
}

/** The searched text: everything that readers see as words. The body comes last, as it may be cut. */
function describe({
  prefix,
  subject,
  body,
  sender,
  recipients,
  attachments,
}: UnindexedMessage): SearchedMail {
  const people = [sender, ...recipients.to, ...(recipients.cc ?? [])]
  const names = people.map(({ name, email }) => (name ? `${name} ${email}` : email))
  const filenames = attachments.map(({ filename }) => filename)
  return { prefix, fields: [subject, ...names, ...filenames, cutText(body)] }
}

/** A character that is cut in two does not count as a letter. */
function cutText(text: string): string {
  // No string has more than three bytes per UTF-16 unit.
  if (3 * text.length <= maxTextBytes) return text
  return Buffer.from(text).subarray(0, maxTextBytes).toString()
}

async function indexOneByOne<Item extends { id: MessageId }>(
  deps: IndexingDeps,
  messages: Messages<Item>,
  waitMs: number,
): Promise<number | null> {
  let stored = 0
  const torn = new Set<MessageId>()
  for (let count = 0; count < maxAtOnce; count++) {
    let found: Item | undefined
    let current: Batch<Item> | undefined
    try {
      const one = await indexBatch(
        deps,
        messages,
        { ...max, messages: 1, waitMs },
        { onFound: ([item]) => (found = item), onRead: (batch) => (current = batch) },
      )
      if (one === null) break
      stored += one
    } catch (error) {
      if (found && isTorn(error) && messages.passOver(found)) {
        // Every organization had its turn since.
        if (torn.has(found.id)) break
        torn.add(found.id)
        deps.log.error({ err: error, message: found.id }, 'message cannot be indexed now: a page is torn')
        continue
      }
      if (!current || !isTheirs(error)) throw error
      const batch = current
      deps.log.error(
        { err: error, message: batch.items[0]!.id },
        'message could not be indexed and is not searchable',
      )
      await deps.db.transaction((tx) => store(tx, messages, batch, ['']))
    }
  }
  return stored === 0 && torn.size > 0 ? null : stored
}

/**
 * Whether the messages are at fault. A lost database, a deadlock with a deletion and threads that do not start will pass.
 */
function isTheirs(error: unknown): boolean {
  if (error instanceof DbFault) return error.kind === 'bad_row' || error.kind === 'other'
  return error instanceof NoWords
}
