// Sweeps the blob store: deletes old files without a row, for example after a crash, and names rows without their file.
import { randomInt } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { uuidTimeMs } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { type Blobs, partCount, type StoredBlob } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { isBackupUnderWay } from '../../store/backups.ts'
import { findBlobsEndingIn, findRawIds } from '../../store/mailbox/raws.ts'
import { claimBlobFolder } from '../claim-blob-folder.ts'

interface SweepDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: Blobs
}

/** Longer than the longest time from a file's last byte to the commit of its row, even if a clock is a day ahead. */
const safeAgeMs = 48 * 3_600_000
/** Lost blobs named in one line of the log. */
const maxNamed = 100

/** Cycles through the parts of the store from a random start, so that frequent restarts skip none. */
export class BlobSweeper {
  readonly #deps: SweepDeps
  #nextPart: number
  #left: StoredBlob[] = []
  /** The number of lost blobs of each part when it was last checked. */
  readonly #lost = new Map<number, number>()

  constructor(deps: SweepDeps, firstPart = randomInt(partCount)) {
    this.#deps = deps
    this.#nextPart = firstPart
  }

  /** Checks up to `limit` files, and starts the next part when one is done. Returns whether this part has more. */
  async sweepNext(limit: number): Promise<boolean> {
    const { blobs, log } = this.#deps
    if (this.#left.length === 0) {
      if (!(await this.#isOurs())) return false
      const part = this.#nextPart
      const named = await findBlobsEndingIn(this.#deps.db, part.toString(16).padStart(2, '0'))
      this.#left = await blobs.list(part)
      this.#nextPart = (part + 1) % partCount
      await this.#reportLost(part, named)
    }
    for (const orphan of await this.#findOrphans(this.#left.splice(0, limit))) {
      await blobs.remove(orphan)
      log.info({ blob: orphan.name }, 'orphaned blob removed')
    }
    return this.#left.length > 0
  }

  /** Logs and counts the blobs that the part lacks although rows name them. */
  async #reportLost(part: number, named: string[]): Promise<void> {
    const { blobs, log } = this.#deps
    const lost = await this.#findLost(named)
    if (lost.length > 0 && !(await blobs.isThere())) return
    this.#lost.set(part, lost.length)
    meters.blobsLost.set([...this.#lost.values()].reduce((sum, count) => sum + count, 0))
    if (lost.length === 0) return
    log.error(
      { count: lost.length, blobs: lost.slice(0, maxNamed) },
      'large messages are lost: the blob store does not have them',
    )
  }

  /** Returns the blobs of rows that are not in the list of their part, unless they were deleted meanwhile. */
  async #findLost(named: string[]): Promise<string[]> {
    const { db, blobs } = this.#deps
    const listed = new Set(this.#left.flatMap(({ key, isFinished }) => (isFinished ? key : [])))
    const missing: string[] = []
    for (const key of named) if (!listed.has(key) && !(await blobs.has(key))) missing.push(key)
    if (missing.length === 0) return []
    const owned = await findRawIds(db, missing)
    return missing.filter((key) => owned.has(key))
  }

  /** A service started over another database by mistake must not take every blob for an orphan. */
  async #isOurs(): Promise<boolean> {
    await claimBlobFolder(this.#deps)
    return await this.#deps.blobs.isThere()
  }

  async #findOrphans(files: StoredBlob[]): Promise<StoredBlob[]> {
    const { db, clock, blobs } = this.#deps
    const before = clock.nowMs() - safeAgeMs
    const owned = await findRawIds(
      db,
      files.map(({ key }) => key),
    )
    // Checked after the rows: a later snapshot cannot name files that have no row now.
    if (await isBackupUnderWay(db)) return []
    const orphans: StoredBlob[] = []
    for (const file of files) {
      if (file.isFinished && owned.has(file.key)) continue
      const writtenAtMs = await blobs.writtenAtMs(file)
      // A store that gives no valid time (NaN) proves nothing.
      if (writtenAtMs !== null && Math.max(writtenAtMs, uuidTimeMs(file.key) ?? 0) <= before)
        orphans.push(file)
    }
    return orphans
  }
}
