// Makes messages searchable after they were filed or accepted: reads in the outbox which are new, a few at a time.
import { setTimeout as sleep } from 'node:timers/promises'
import type { MessageId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { NoWords, type ParsePool } from '../mail/parse-pool.ts'
import type { SearchedMail } from '../mail/words.ts'
import { type Db, DbFault } from '../store/db.ts'
import {
  addSearchParts,
  claimIndex,
  findNewMessages,
  moveIndexPlace,
  type NewMessages,
  readUnindexed,
  settleIndex,
  storeWords,
  type UnindexedMessage,
} from '../store/search.ts'

interface IndexingDeps {
  db: Db
  log: Log
  parsePool: Pick<ParsePool, 'words'>
}

/** Rows of the outbox that are looked through at once; most tell of no new message. */
const outboxRows = 256
/**
 * Few and small enough that readers of the outbox, who wait for what this writes, hardly notice: 20 to 40 ms. Of 1 KB of
 * text, 32 at once cost PostgreSQL 270 us each, 128 cost 230.
 */
const most = { messages: 128, bytes: 1 << 18, characters: 1 << 19 }
/** Mails whose words are made at once, so that mail to be filed does not wait behind them for long. */
const wordsAtOnce = 8
/** Rest after work, as a multiple of its time, while this node is busy all the time: accepting and filing come first. */
const restPerWork = 5
const longestRestMs = 1_000

/** Indexes some messages, and rests the longer the busier this node is; answers whether there may be more. */
export async function makeSearchableAtEase(deps: IndexingDeps): Promise<boolean> {
  const [before, startedMs] = [performance.eventLoopUtilization(), performance.now()]
  const isMore = await makeSearchable(deps)
  const { utilization } = performance.eventLoopUtilization(before)
  const restMs = (performance.now() - startedMs) * restPerWork * utilization
  if (isMore) await sleep(Math.min(restMs, longestRestMs))
  return isMore
}

/** Indexes some messages; answers whether there may be more. One node does it at a time. */
export async function makeSearchable(deps: IndexingDeps): Promise<boolean> {
  const stored = await indexSome(deps, most).catch(async (error) => {
    if (!isTheirs(error)) throw error
    deps.log.warn({ err: error }, 'messages could not be indexed; they are tried one by one')
    return await indexOneByOne(deps)
  })
  if (stored) await settleIndex(deps.db)
  return stored !== null
}

/** Answers how many messages were stored; null where there is nothing to look at, or another node does it. */
async function indexSome(
  { db, parsePool }: IndexingDeps,
  bounds: typeof most,
  onRead: (messages: UnindexedMessage[]) => void = () => {},
): Promise<number | null> {
  return await db.transaction(async (tx) => {
    if (!(await claimIndex(tx))) return null
    const { ids, last } = takeRows(await findNewMessages(tx, outboxRows), bounds.messages)
    if (!last) return null
    // Committed by itself: while words are made nothing may have been written.
    if (ids.length > 0 && (await addSearchParts(tx, ids))) return 0
    const { messages, isAll } = ids.length > 0 ? await readUnindexed(tx, ids, bounds) : nothing
    onRead(messages)
    const vectors = await makeVectors(parsePool, messages)
    if (messages.length > 0) await storeWords(tx, messages, vectors)
    if (isAll) await moveIndexPlace(tx, last)
    return messages.length
  })
}

const nothing = { messages: [], isAll: true }

/** The first rows with about `wanted` messages together. */
function takeRows(rows: NewMessages[], wanted: number): { ids: MessageId[]; last: NewMessages | null } {
  const ids: MessageId[] = []
  let last: NewMessages | null = null
  for (const row of rows) {
    if (ids.length > 0 && ids.length + row.messages.length > wanted) break
    ids.push(...row.messages)
    last = row
  }
  return { ids, last }
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

/** What is searched: all that readers of the message see in words. The text comes last, for it is what is cut. */
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
  return { prefix, fields: [subject, ...names, ...attachments.map(({ filename }) => filename), body] }
}

/** A message that cannot be indexed is passed over, so that it never holds up the others: no search finds it. */
async function indexOneByOne(deps: IndexingDeps): Promise<number> {
  let stored = 0
  for (let count = 0; count < most.messages; count++) {
    let current: UnindexedMessage | undefined
    try {
      const one = await indexSome(deps, { ...most, messages: 1 }, ([read]) => (current = read))
      if (one === null) break
      stored += one
    } catch (error) {
      if (!current || !isTheirs(error)) throw error
      const message = current
      deps.log.error(
        { err: error, message: message.id },
        'a message could not be indexed and is not searched',
      )
      await deps.db.transaction((tx) => storeWords(tx, [message], ['']))
    }
  }
  return stored
}

/** Whether the messages are at fault. A database out of reach, a deadlock with a deletion, threads that do not start pass. */
function isTheirs(error: unknown): boolean {
  if (error instanceof DbFault) return error.kind === 'bad_row' || error.kind === 'other'
  return error instanceof NoWords
}
