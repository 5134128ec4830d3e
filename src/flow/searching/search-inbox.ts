// What a search finds its words in: an inbox is indexed once somebody searches it, its newest messages at once.
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { FairLimit } from '../../base/fair-limit.ts'
import type { InboxId, OrganizationId } from '../../base/ids.ts'
import { Reads } from '../../postgres/reads.ts'
import type { InboxRow } from '../../store/mailbox/inboxes.ts'
import { settleIndex } from '../../store/mailbox/search.ts'
import { beginSearch, findSearched, noteSearch } from '../../store/mailbox/searched-inboxes.ts'
import { type IndexingDeps, indexSome, maxAtOnce, olderMessages } from './word-batch.ts'

interface Deps extends IndexingDeps {
  clock: Clock
}

type SearchedInbox = Pick<InboxRow, 'id' | 'organizationId'>

/** What a first search indexes before it answers: so many of the newest messages, as far as there is time. */
const newest = 2_000
const maxWaitMs = 900
/** The first batch is small, so that on a busy node the newest are found at least. */
const firstBatch = 16
/** That an inbox is still searched is noted no more often. */
const noteMs = 3_600_000

export class InboxSearches {
  readonly #deps: Deps
  /** Inboxes whose newest messages this node is indexing. */
  readonly #beginning = new Map<InboxId, Promise<void>>()
  /** Organizations whose inboxes are searched for the first time take turns, batch by batch. */
  readonly #batches = new FairLimit(1)
  /** A search of a large inbox keeps a processor busy. With two slots, a search never waits because of one other organization. */
  readonly #reads = new Reads(Math.max(2, availableParallelism()))
  /** What was stored last is on its way into the index itself. */
  #settling: Promise<void> = Promise.resolve()
  #stopping = false

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Has the inbox indexed as far as a search can wait for it; returns whether it is complete. */
  async prepare(inbox: SearchedInbox): Promise<boolean> {
    const { db, clock } = this.#deps
    const known = await findSearched(db, inbox.id)
    const at = clock.now()
    if (known && at.getTime() - known.usedAt.getTime() > noteMs)
      await db.transaction((tx) => noteSearch(tx, inbox.id, at))
    if (known?.isComplete) return true
    const beginning = this.#beginning.get(inbox.id) ?? (known ? null : this.#begin(inbox))
    if (beginning === null) return false
    await inTime(beginning)
    return (await findSearched(db, inbox.id))?.isComplete ?? false
  }

  /** Runs `read`, the search itself, as soon as the organization has a free slot. Throws `unavailable` after 15 s without one. */
  async run<Result>(organizationId: OrganizationId, read: () => Promise<Result>): Promise<Result> {
    return await this.#reads.run(organizationId, undefined, read)
  }

  /** Resolves when nothing is indexed any more. */
  async stop(): Promise<void> {
    this.#stopping = true
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
      if (remainingMs() <= 0 || this.#stopping) return false
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

  /** The search answers with what is there, and the job goes on. */
  #warn(error: unknown, inbox: InboxId): void {
    this.#deps.log.warn({ err: error, inbox }, 'the newest messages of an inbox could not be indexed at once')
  }
}

/** Resolves with the work, or when nobody waits for it any more; rejects as it does until then. */
async function inTime(work: Promise<void>): Promise<void> {
  const over = new AbortController()
  // What fails later has been told to nobody who waits; who asks next begins anew.
  work.catch(() => {})
  const waited = sleep(maxWaitMs, undefined, { signal: over.signal, ref: false }).catch(() => {})
  await Promise.race([work, waited]).finally(() => over.abort())
}
