// Makes messages of searched inboxes searchable: new ones from the outbox, then older ones, round robin over organizations.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../postgres/db.ts'
import { settleIndex, takeNewMessages } from '../../store/mailbox/search.ts'
import { findUnfinished, isSearchUsed } from '../../store/mailbox/searched-inboxes.ts'
import {
  type IndexingDeps,
  indexSome,
  type OrganizationCursor,
  olderMessages,
  waitingMessages,
} from './word-batch.ts'

interface Deps extends IndexingDeps {
  /** The organization that this node indexed last. */
  cursor: OrganizationCursor
  /** The same for older messages. */
  olderCursor: OrganizationCursor
}

/** The part of the outbox that one transaction reads, 2 to 15 ms. Most rows are not about a new message. */
const page = { rows: 256, items: 2_000 }
/** The maximum of pages read before messages are indexed. So the newest get their turn, whatever came before them. */
const maxPages = 64
/** How long to wait for another node that indexes. */
const claimMs = 250
/** Accepting and filing have priority: indexing takes up to a fifth of the time, in batches of some 50 ms. */
const restShare = 4
const maxRestMs = 1_000

/** Indexes some messages, then pauses. Returns whether there may be more. */
export async function makeSearchableAtEase(deps: Deps): Promise<boolean> {
  const startedMs = performance.now()
  const isMore = await makeSearchable(deps)
  if (isMore) await sleep(Math.min(maxRestMs, restShare * (performance.now() - startedMs)))
  return isMore
}

/** Indexes some messages, on one node at a time and only if an inbox is searched. Returns whether there may be more. */
export async function makeSearchable(deps: Deps): Promise<boolean> {
  if (!(await isSearchUsed(deps.db))) return false
  const isMore = await takeNew(deps.db)
  const stored = await indexSome(deps, waitingMessages(deps.cursor), { waitMs: claimMs })
  const isUnfinished = await indexOlder(deps)
  if (stored !== null || isUnfinished) await settleIndex(deps.db.writer)
  return stored !== null || isMore || isUnfinished
}

/** Queues new messages for indexing, one page per transaction. Returns whether there may be more of them. */
async function takeNew(db: Db): Promise<boolean> {
  for (let count = 0; count < maxPages; count++)
    if ((await db.transaction((tx) => takeNewMessages(tx, page))) === 0) return false
  return true
}

/** Indexes some older messages in an inbox of the next organization. Returns whether any inbox is incomplete. */
async function indexOlder(deps: Deps): Promise<boolean> {
  const inbox = await findUnfinished(deps.db, deps.olderCursor.last)
  if (!inbox) return false
  deps.olderCursor.last = inbox.organizationId
  await indexSome(deps, olderMessages(inbox.inboxId), { waitMs: claimMs })
  return true
}
