// Whether the database takes what is written: what its role says, a commit, and whether its disk was full just now.
import { within } from '../base/within.ts'
import { type Db, isReadOnly } from '../postgres/db.ts'

/** Longer than a commit takes anywhere that mail is accepted. */
const longestCommitMs = 2_000
/** Longer than the wait for a connection and a commit together. */
const longestAnswerMs = 8_000
/** A full disk is known by what it refused; work that comes after this long finds out anew. */
const knownFullMs = 10_000

const readOnly = 'the database is read-only: it is a standby, or default_transaction_read_only is on'
const noRoom = 'the disk of the database is full'
const waiting = `a commit has waited ${longestCommitMs / 1_000} s: a standby that must confirm it is away, or the disk hangs`
const noAnswer = `the database has not answered for ${longestAnswerMs / 1_000} s`

export class Readiness {
  readonly #db: Db
  /** However many ask, one commit waits. */
  #asked: Promise<string | null> | null = null

  constructor(db: Db) {
    this.#db = db
  }

  /** Why nothing can be written; null if it can. */
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
