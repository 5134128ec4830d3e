// Makes messages of searched inboxes searchable after they were filed or accepted: reads in the outbox which are new, and
// takes a few at a time, of organizations in turn; and then a few of what was there before an inbox was searched.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../postgres/db.ts'
import { settleIndex, takeNewMessages } from '../../store/mailbox/search.ts'
import { findUnfinished, isSearchUsed } from '../../store/mailbox/searched-inboxes.ts'
import { type IndexingDeps, indexSome, olderMessages, type Rotation, waitingMessages } from './word-batch.ts'

interface Deps extends IndexingDeps {
  /** Who had the last turn in this node's indexing. */
  rotation: Rotation
  /** And who in that of older messages. */
  olderRotation: Rotation
}

/** What is read of the outbox in one transaction, 2 to 15 ms; most rows are of no new message. */
const page = { rows: 256, items: 2_000 }
/** Pages before messages are indexed, so that what came last has its turn, whatever came before it. */
const maxPages = 64
/** How long to wait for another node that indexes. */
const claimMs = 250
/** Accepting and filing come first: a fifth of the time at most is spent on indexing, a batch of some 50 ms after the other. */
const restShare = 4
const maxRestMs = 1_000

/** Indexes some messages and rests; returns whether there may be more. */
export async function makeSearchableAtEase(deps: Deps): Promise<boolean> {
  const startedMs = performance.now()
  const isMore = await makeSearchable(deps)
  if (isMore) await sleep(Math.min(maxRestMs, restShare * (performance.now() - startedMs)))
  return isMore
}

/**
 * Indexes some messages; returns whether there may be more. One node does it at a time. Where no inbox is searched the outbox
 * is not read.
 */
export async function makeSearchable(deps: Deps): Promise<boolean> {
  if (!(await isSearchUsed(deps.db))) return false
  const isBehind = await takeNew(deps.db)
  const stored = await indexSome(deps, waitingMessages(deps.rotation), { waitMs: claimMs })
  const isUnfinished = await indexOlder(deps)
  if (stored !== null || isUnfinished) await settleIndex(deps.db.writer)
  return stored !== null || isBehind || isUnfinished
}

/** Has what is new wait for its turn, a little in each transaction; returns whether there may be more of it. */
async function takeNew(db: Db): Promise<boolean> {
  for (let count = 0; count < maxPages; count++)
    if ((await db.transaction((tx) => takeNewMessages(tx, page))) === 0) return false
  return true
}

/** Indexes some older messages of an inbox of the next organization; returns whether any inbox lacks some. */
async function indexOlder(deps: Deps): Promise<boolean> {
  const inbox = await findUnfinished(deps.db, deps.olderRotation.last)
  if (!inbox) return false
  deps.olderRotation.last = inbox.organizationId
  await indexSome(deps, olderMessages(inbox.inboxId), { waitMs: claimMs })
  return true
}
