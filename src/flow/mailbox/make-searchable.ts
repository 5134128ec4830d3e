// Makes messages searchable after they were filed or accepted: reads in the outbox which are new, and takes a few at a time,
// of organizations in turn.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../base/log.ts'
import type { Rotation } from '../../base/rotation.ts'
import { NoWords, type ParsePool } from '../../mail/parse-pool.ts'
import type { SearchedMail } from '../../mail/read/words.ts'
import { type Db, DbFault, type Tx } from '../../postgres/db.ts'
import {
  addSearchParts,
  claimIndex,
  dropWaiting,
  findSearchOrder,
  readUnindexed,
  settleIndex,
  storeWords,
  takeNewMessages,
  type UnindexedMessage,
  type WaitingMessage,
} from '../../store/search.ts'

interface IndexingDeps {
  db: Db
  log: Log
  parsePool: Pick<ParsePool, 'words'>
  /** Who had the last turn in this node's indexing. */
  rotation: Pick<Rotation, 'last'>
}

/** What is looked through of the outbox in one transaction, 2 to 15 ms; most rows tell of no new message. */
const page = { rows: 256, items: 2_000 }
/** Looks before messages are indexed, so that what came last has its turn, whatever came before it. */
const maxPages = 64
/**
 * Few and small enough that readers of the outbox, who wait for what this writes, hardly notice: 20 to 40 ms. Of 1 KB of
 * text, 32 at once cost PostgreSQL 270 us each, 128 cost 230.
 */
const max = { messages: 128, bytes: 1 << 18, characters: 1 << 19 }
/** Mails whose words are made at once, so that mail to be filed does not wait behind them for long. */
const wordsAtOnce = 8
/** Rest after work, as a multiple of its time, while this node is busy all the time: accepting and filing come first. */
const restPerWork = 5
const maxRestMs = 1_000

/** Indexes some messages, and rests the longer the busier this node is; returns whether there may be more. */
export async function makeSearchableAtEase(deps: IndexingDeps): Promise<boolean> {
  const [before, startedMs] = [performance.eventLoopUtilization(), performance.now()]
  const isMore = await makeSearchable(deps)
  const { utilization } = performance.eventLoopUtilization(before)
  const restMs = (performance.now() - startedMs) * restPerWork * utilization
  if (isMore) await sleep(Math.min(restMs, maxRestMs))
  return isMore
}

/** Indexes some messages; returns whether there may be more. One node does it at a time. */
export async function makeSearchable(deps: IndexingDeps): Promise<boolean> {
  const isBehind = await takeNew(deps.db)
  const stored = await indexSome(deps, max).catch(async (error) => {
    if (!isTheirs(error)) throw error
    deps.log.warn({ err: error }, 'messages could not be indexed; they are tried one by one')
    return await indexOneByOne(deps)
  })
  if (stored) await settleIndex(deps.db)
  return stored !== null || isBehind
}

/** Has what is new wait for its turn, a little in each transaction; returns whether there may be more of it. */
async function takeNew(db: Db): Promise<boolean> {
  for (let count = 0; count < maxPages; count++)
    if ((await db.transaction((tx) => takeNewMessages(tx, page))) === 0) return false
  return true
}

/** What was looked at in one turn, and those of it that are to be indexed. */
interface Batch {
  waiting: WaitingMessage[]
  messages: UnindexedMessage[]
}

/** Returns how many messages were stored; null where none waits, or another node does it. */
async function indexSome(
  { db, parsePool, rotation }: IndexingDeps,
  bounds: typeof max,
  onRead: (batch: Batch) => void = () => {},
): Promise<number | null> {
  return await db.transaction(async (tx) => {
    if (!(await claimIndex(tx))) return null
    const waiting = await findSearchOrder(tx, rotation.last, bounds.messages)
    if (waiting.length === 0) return null
    // Committed by itself: while words are made nothing may have been written.
    const ids = waiting.map(({ id }) => id)
    if (await addSearchParts(tx, ids)) return 0
    const batch = await readUnindexed(tx, waiting, bounds)
    rotation.last = lastOrganization(batch)
    onRead(batch)
    await store(tx, batch, await makeVectors(parsePool, batch.messages))
    return batch.messages.length
  })
}

/** Each has a first message before any has a second: who came first in last place had the last turn. */
function lastOrganization({ waiting }: Batch): Rotation['last'] {
  return [...new Set(waiting.map(({ organizationId }) => organizationId))].at(-1) ?? null
}

async function store(tx: Tx, { waiting, messages }: Batch, vectors: string[]): Promise<void> {
  if (messages.length > 0) await storeWords(tx, messages, vectors)
  await dropWaiting(tx, waiting)
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
  for (let count = 0; count < max.messages; count++) {
    let current: Batch | undefined
    try {
      const one = await indexSome(deps, { ...max, messages: 1 }, (batch) => (current = batch))
      if (one === null) break
      stored += one
    } catch (error) {
      if (!current || !isTheirs(error)) throw error
      const batch = current
      deps.log.error(
        { err: error, message: batch.waiting[0]!.id },
        'a message could not be indexed and is not searched',
      )
      await deps.db.transaction((tx) => store(tx, batch, ['']))
    }
  }
  return stored
}

/** Whether the messages are at fault. A database out of reach, a deadlock with a deletion, threads that do not start pass. */
function isTheirs(error: unknown): boolean {
  if (error instanceof DbFault) return error.kind === 'bad_row' || error.kind === 'other'
  return error instanceof NoWords
}
