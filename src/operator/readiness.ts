// Checks whether the database accepts writes: its role, a commit, and whether its disk was recently full.
import { within } from '../base/within.ts'
import { type Db, isReadOnly } from '../postgres/db.ts'

/** Longer than a commit takes on any deployment that accepts mail. */
const longestCommitMs = 2_000
/** Longer than the wait for a connection and a commit together. */
const longestAnswerMs = 8_000
/** How long the disk counts as full after a write failed for lack of room. The next write then tries again. */
const knownFullMs = 10_000

const readOnly = 'the database is read-only: it is a standby, or default_transaction_read_only is on'
const noRoom = 'the disk of the database is full'
const waiting = `a commit has waited ${longestCommitMs / 1_000} s: a standby that must confirm it is away, or the disk hangs`
const noAnswer = `the database has not answered for ${longestAnswerMs / 1_000} s`

export class Readiness {
  readonly #db: Db
  /** All concurrent callers share one commit. */
  #asked: Promise<string | null> | null = null

  constructor(db: Db) {
    this.#db = db
  }

  /** Returns why nothing can be written, or null. */
  async fault(): Promise<string | null> {
    if (performance.now() - this.#db.noRoomAtMs < knownFullMs) return noRoom
    this.#asked ??= within(longestAnswerMs, this.#ask(), () => noAnswer).finally(() => (this.#asked = null))
    return await this.#asked
  }

  async #ask(): Promise<string | null> {
    try {
      if (await isReadOnly(this.#db)) return readOnly
      return (await this.#db.commitsWithin(longestCommitMs)) ? null : waiting
    } catch (error) {
      return (error as Error).message
    }
  }
}
