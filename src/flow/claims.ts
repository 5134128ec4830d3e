// What a worker of this node claims of one kind of work, and gives back where it does not end it.
import type { Clock } from '../base/clock.ts'
import type { OrganizationId } from '../base/ids.ts'
import type { Db } from '../postgres/db.ts'
import {
  type Claim,
  type ClaimedWork,
  claimWork,
  putBackWork,
  type WorkClaim,
  type WorkKind,
} from '../store/work.ts'

export interface ClaimsDeps {
  db: Db
  clock: Clock
  /** The number of this node; null while the others do not know it. */
  nodeId(): number | null
}

export class Claims {
  readonly #deps: ClaimsDeps
  readonly #kind: WorkKind
  /** The organization that had the last turn. */
  #last: OrganizationId | null = null
  /** What could not be given back, for the database was away: no failure of the work. */
  #unreturned: { claim: Claim; ids: readonly string[] }[] = []

  constructor(deps: ClaimsDeps, kind: WorkKind) {
    this.#deps = deps
    this.#kind = kind
  }

  /**
   * Claims due work, of organizations in turn, and has it done; returns whether there is more to do at once. `work` takes out of
   * `undone` what it has ended or put off; the rest is given back.
   */
  async each(
    wanted: WorkClaim,
    work: (claimed: ClaimedWork, undone: Set<string>) => Promise<void>,
  ): Promise<boolean> {
    const claimed = await this.take(wanted)
    if (!claimed || claimed.ids.length === 0) return claimed?.isMore ?? false
    const undone = new Set(claimed.ids)
    try {
      await work(claimed, undone)
      return claimed.isMore || undone.size > 0
    } finally {
      await this.giveBack(claimed.claim, [...undone])
    }
  }

  /** Claims due work; null while this node has no number to claim it under. */
  async take(wanted: WorkClaim): Promise<ClaimedWork | null> {
    await this.#giveBackAll()
    const { db, clock, nodeId } = this.#deps
    const owner = nodeId()
    if (owner === null) return null
    const by = { kind: this.#kind, owner, at: clock.now() }
    const claimed = await claimWork(db.writer, by, { behind: this.#last, ...wanted })
    this.#last = claimed.last
    return claimed
  }

  /** Ends the claim of what was not worked on to its end; now, or else before the next one. */
  async giveBack(claim: Claim, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    this.#unreturned.push({ claim, ids })
    // The error that matters is the one that left them undone.
    await this.#giveBackAll().catch(() => {})
  }

  async #giveBackAll(): Promise<void> {
    for (const { claim, ids } of [...this.#unreturned]) {
      await putBackWork(this.#deps.db.writer, claim, ids)
      this.#unreturned = this.#unreturned.filter((other) => other.ids !== ids)
    }
  }
}
