// Removes messages that have been kept for as long as the deployment wants them, as their owners would delete them.
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
 * Goes through the messages of that age, the oldest first, round after round. What it passes over because it is still to be
 * delivered costs a look in each round, and not in each step.
 */
export class OldMessages {
  readonly #deps: Deps
  readonly #keptMs: number
  #afterId = ''

  constructor(deps: Deps, keptMs: number) {
    this.#deps = deps
    this.#keptMs = keptMs
  }

  /** Looks at the next `limit` in one commit; returns whether there may be more in this round. */
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

  /** Those that nobody is waiting for; returns the blobs that go with them. */
  async #remove(tx: Tx, found: readonly MessageOfAge[]): Promise<string[]> {
    const settled = found.filter(({ isWaiting }) => !isWaiting)
    const living = await lockInboxes(
      tx,
      settled.map(({ inboxId }) => inboxId),
    )
    // Of a deleted inbox they go by themselves.
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
