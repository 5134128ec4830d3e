// Removes messages older than the deployment's retention, as their owners would delete them.
import type { Clock } from '../../base/clock.ts'
import { firstMessageIdAt } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { lockInboxes } from '../../store/mailbox/inboxes.ts'
import { deleteMessageRows } from '../../store/mailbox/messages.ts'
import { deleteUnusedRaws } from '../../store/mailbox/raws.ts'
import { findMessagesOfAge, type MessageOfAge } from '../../store/mailbox/removal.ts'
import { eraseResults } from '../../store/sending/submissions.ts'
import { deleteBlobs } from '../delete-blobs.ts'

type Deps = { db: Db; clock: Clock; blobs: Blobs }

/**
 * Cycles through messages of that age, oldest first. Skips one that awaits delivery, at the cost of one check in each cycle.
 */
export class OldMessages {
  readonly #deps: Deps
  readonly #keptMs: number
  #afterId = ''

  constructor(deps: Deps, keptMs: number) {
    this.#deps = deps
    this.#keptMs = keptMs
  }

  /** Checks the next `limit` messages in one commit. Returns whether there may be more in this cycle. */
  async removeNext(limit: number): Promise<boolean> {
    const { db, clock, blobs } = this.#deps
    const beforeId = firstMessageIdAt(Math.floor(clock.nowMs() - this.#keptMs))
    const { found, unused } = await db.transaction(async (tx) => {
      const found = await findMessagesOfAge(tx, { afterId: this.#afterId, beforeId }, limit)
      return { found, unused: await this.#remove(tx, found) }
    })
    await deleteBlobs({ db, blobs }, unused)
    this.#afterId = found.length === limit ? found.at(-1)!.id : ''
    return this.#afterId !== ''
  }

  /** Deletes those without waiting deliveries. Returns the blobs to delete. */
  async #remove(tx: Tx, found: readonly MessageOfAge[]): Promise<string[]> {
    const settled = found.filter(({ isWaiting }) => !isWaiting)
    const living = await lockInboxes(
      tx,
      settled.map(({ inboxId }) => inboxId),
    )
    // Those of deleted inboxes are purged separately.
    const old = settled.filter(({ inboxId }) => living.has(inboxId))
    await eraseResults(
      tx,
      old.flatMap(({ submissionId }) => submissionId ?? []),
    )
    await deleteMessageRows(tx, old, this.#deps.clock.now())
    return await deleteUnusedRaws(
      tx,
      old.flatMap(({ rawId }) => rawId ?? []),
    )
  }
}
