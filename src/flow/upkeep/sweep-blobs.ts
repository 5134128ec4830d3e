// Sweeps the blob store: deletes old files without a row, for example after a crash before the commit.
import { randomInt } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { uuidTimeMs } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { type Blobs, partCount, type StoredBlob } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { isBackupUnderWay } from '../../store/backups.ts'
import { findRawIds } from '../../store/mailbox/raws.ts'
import { claimBlobFolder } from '../claim-blob-folder.ts'

interface SweepDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: Blobs
}

/** Longer than the longest time from a file's last byte to the commit of its row, even if a clock is a day ahead. */
const safeAgeMs = 48 * 3_600_000

/** Cycles through the parts of the store from a random start, so that frequent restarts skip none. */
export class BlobSweeper {
  readonly #deps: SweepDeps
  #nextPart = randomInt(partCount)
  #left: StoredBlob[] = []

  constructor(deps: SweepDeps) {
    this.#deps = deps
  }

  /** Checks up to `limit` files, and starts the next part when one is done. Returns whether this part has more. */
  async sweepNext(limit: number): Promise<boolean> {
    const { blobs, log } = this.#deps
    if (this.#left.length === 0) {
      if (!(await this.#isOurs())) return false
      this.#left = await blobs.list(this.#nextPart)
      this.#nextPart = (this.#nextPart + 1) % partCount
    }
    for (const orphan of await this.#findOrphans(this.#left.splice(0, limit))) {
      await blobs.remove(orphan)
      log.info({ blob: orphan.name }, 'orphaned blob removed')
    }
    return this.#left.length > 0
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
      if (writtenAtMs === null || Math.max(writtenAtMs, uuidTimeMs(file.key) ?? 0) > before) continue
      orphans.push(file)
    }
    return orphans
  }
}
