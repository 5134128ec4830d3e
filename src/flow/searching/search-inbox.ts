// Prepares inboxes for searches: the first search of an inbox starts its indexing, with the newest messages at once.
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { FairLimit } from '../../base/fair-limit.ts'
import type { InboxId, OrganizationId } from '../../base/ids.ts'
import { divided } from '../../base/share.ts'
import { Reads } from '../../postgres/reads.ts'
import type { InboxRow } from '../../store/mailbox/inboxes.ts'
import { settleIndex } from '../../store/mailbox/search.ts'
import {
  beginSearch,
  findSearched,
  noteSearch,
  type SearchedRow,
} from '../../store/mailbox/searched-inboxes.ts'
import { type IndexingDeps, indexSome, maxAtOnce, olderMessages } from './word-batch.ts'

interface Deps extends IndexingDeps {
  clock: Clock
  /** The processes that divide the slots of searches. */
  workers?: number
}

type SearchedInbox = Pick<InboxRow, 'id' | 'organizationId'>

/** How many of the newest messages a first search indexes before it answers, if time allows. */
const newest = 2_000
const maxWaitMs = 900
/** The first batch is small, so that even a busy node indexes the very newest. */
const firstBatch = 16
/** The minimum interval between records that an inbox is still searched. */
const noteMs = 3_600_000

export class InboxSearches {
  readonly #deps: Deps
  /** Inboxes whose newest messages this node is indexing. */
  readonly #beginning = new Map<InboxId, Promise<void>>()
  /** First searches share the indexing, round robin over organizations, batch by batch. */
  readonly #batches = new FairLimit(1)
  /**
   * A search of a large inbox keeps a processor busy. With two slots, a search never waits for just one other organization.
   */
  readonly #reads: Reads
  /** The pending merge of the last stored words into the main index. */
  #settling: Promise<void> = Promise.resolve()
  #isStopping = false

  constructor(deps: Deps) {
    this.#deps = deps
    this.#reads = new Reads(divided(Math.max(2, availableParallelism()), deps.workers ?? 1))
  }

  /** Indexes the inbox for as long as a search can wait. Returns whether the index is complete. */
  async prepare(inbox: SearchedInbox): Promise<boolean> {
    const known = await this.#noteUse(inbox)
    if (known?.isComplete) return true
    const beginning = this.#beginning.get(inbox.id) ?? (known ? null : this.#begin(inbox))
    if (beginning === null) return false
    await inTime(beginning)
    return (await findSearched(this.#deps.db, inbox.id))?.isComplete ?? false
  }

  /** Returns whether the index of the inbox is complete. Starts no indexing and does not wait for any. */
  async isIndexed(inbox: SearchedInbox): Promise<boolean> {
    return (await this.#noteUse(inbox))?.isComplete ?? false
  }

  /** Records that the inbox is searched, so that its index is kept. Null if it has none. */
  async #noteUse({ id }: SearchedInbox): Promise<SearchedRow | null> {
    const { db, clock } = this.#deps
    const known = await findSearched(db, id)
    const at = clock.now()
    if (known && at.getTime() - known.usedAt.getTime() > noteMs)
      await db.transaction((tx) => noteSearch(tx, id, at))
    return known
  }

  /** Runs `read`, the search itself, once the organization has a free slot. Throws `unavailable` after 15 s without one. */
  async run<Result>(organizationId: OrganizationId, read: () => Promise<Result>): Promise<Result> {
    return await this.#reads.run(organizationId, undefined, read)
  }

  /** Resolves when all indexing has ended. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.allSettled(this.#beginning.values())
    await this.#settling
  }

  #begin(inbox: SearchedInbox): Promise<void> {
    const beginning = this.#indexNewest(inbox).finally(() => this.#beginning.delete(inbox.id))
    this.#beginning.set(inbox.id, beginning)
    return beginning
  }

  async #indexNewest({ id, organizationId }: SearchedInbox): Promise<void> {
    const { db, clock } = this.#deps
    const untilMs = performance.now() + maxWaitMs
    const remainingMs = () => Math.ceil(untilMs - performance.now())
    await db.transaction((tx) => beginSearch(tx, id, newest, clock.now()))
    let atOnce = firstBatch
    const nextBatch = async () => {
      if (remainingMs() <= 0 || this.#isStopping) return false
      const bounds = { waitMs: remainingMs(), atOnce }
      atOnce = Math.min(atOnce * 2, maxAtOnce)
      return (await indexSome(this.#deps, olderMessages(id), bounds)) !== null
    }
    try {
      while (await this.#batches.run(organizationId, nextBatch));
    } catch (error) {
      this.#warn(error, id)
    }
    this.#settling = this.#settling.then(() => settleIndex(db.writer)).catch((error) => this.#warn(error, id))
  }

  /** The search answers with what is indexed, and the job continues. */
  #warn(error: unknown, inbox: InboxId): void {
    this.#deps.log.warn({ err: error, inbox }, 'newest messages of an inbox could not be indexed yet')
  }
}

/** Resolves with the work or after `maxWaitMs`. Rejects if the work fails before. */
async function inTime(work: Promise<void>): Promise<void> {
  const over = new AbortController()
  // No search waits for a later failure. The next search begins anew.
  work.catch(() => {})
  const waited = sleep(maxWaitMs, undefined, { signal: over.signal, ref: false }).catch(() => {})
  await Promise.race([work, waited]).finally(() => over.abort())
}
