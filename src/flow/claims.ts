// The work of one kind that a worker of this node claims, and gives back if it is not finished.
import type { Clock } from '../base/clock.ts'
import type { OrganizationId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Db, DbFault } from '../postgres/db.ts'
import {
  type Claim,
  type ClaimedWork,
  claimWork,
  putBackWork,
  type WorkClaimRequest,
  type WorkKind,
} from '../store/work.ts'
import { ownFaultWaitMs } from './own-fault.ts'

export interface ClaimsDeps {
  db: Db
  clock: Clock
  /** The number of this node. Null while other nodes do not know this node. */
  nodeId(): number | null
  /** Called when claimed work has ended or was postponed. */
  onEnded?(): void
}

export class Claims {
  readonly #deps: ClaimsDeps
  readonly #kind: WorkKind
  /** The organization whose work was claimed last. */
  #last: OrganizationId | null = null
  /** Claims that could not be given back because the database was away. This is no failure of the work. */
  #unreturned: { claim: Claim; ids: readonly string[] }[] = []

  constructor(deps: ClaimsDeps, kind: WorkKind) {
    this.#deps = deps
    this.#kind = kind
  }

  /**
   * Claims due work in round robin over organizations and passes it to `work`. Returns whether more work is due now. `work`
   * removes from `undone` the ids that it ended or postponed. The others are given back.
   */
  async each(
    wanted: WorkClaimRequest,
    work: (claimed: ClaimedWork, undone: Set<string>) => Promise<void>,
  ): Promise<boolean> {
    const claimed = await this.take(wanted)
    if (!claimed || claimed.ids.length === 0) return claimed?.isMore ?? false
    const undone = new Set(claimed.ids)
    try {
      await work(claimed, undone)
      if (undone.size < claimed.ids.length) this.#deps.onEnded?.()
      return claimed.isMore || undone.size > 0
    } finally {
      await this.giveBack(claimed.claim, [...undone])
    }
  }

  /** Claims due work. Null while this node has no number to claim under. */
  async take(wanted: WorkClaimRequest): Promise<ClaimedWork | null> {
    await this.#giveBackAll()
    const { db, clock, nodeId } = this.#deps
    const owner = nodeId()
    if (owner === null) return null
    const by = { kind: this.#kind, owner, at: clock.now() }
    const claimed = await claimWork(db.writer, by, { after: this.#last, ...wanted })
    this.#last = claimed.last
    return claimed
  }

  /** Ends the claim on unfinished work, either now or before the next claim. */
  async giveBack(claim: Claim, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    this.#unreturned.push({ claim, ids })
    // The error that left the work undone matters more.
    await this.#giveBackAll().catch(() => {})
  }

  async #giveBackAll(): Promise<void> {
    for (const { claim, ids } of [...this.#unreturned]) {
      await putBackWork(this.#deps.db.writer, claim, ids)
      this.#unreturned = this.#unreturned.filter((other) => other.ids !== ids)
    }
  }
}

/** Postpones claimed work that needs a torn page of the database, and removes it from `undone`. This is no failure of it. */
export async function putOffTorn(
  { db, clock, log }: { db: Db; clock: Clock; log: Log },
  claim: Claim,
  torn: ReadonlyMap<string, DbFault>,
  undone: Set<string>,
): Promise<void> {
  for (const [id, fault] of torn) {
    log.error({ err: fault, id, kind: claim.kind }, 'claimed work needs a torn page of the database')
    await putBackWork(db.writer, claim, [id], { dueAt: new Date(clock.nowMs() + ownFaultWaitMs) })
    undone.delete(id)
  }
}
