// Sweeps the blob store: files that no row names, whatever has kept theirs from being committed, go once they are old.
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

/** Longer than the longest way from a file's last byte to the commit of its row, even for a clock that is a day ahead. */
const safeAgeMs = 48 * 3_600_000

/** Goes round the parts of the store, beginning anywhere, so that frequent restarts leave none out. */
export class BlobSweeper {
  readonly #deps: SweepDeps
  #nextPart = randomInt(partCount)
  #left: StoredBlob[] = []

  constructor(deps: SweepDeps) {
    this.#deps = deps
  }

  /** Looks at up to `limit` files, of the next part once one is done; returns whether more of this part is left. */
  async sweepNext(limit: number): Promise<boolean> {
    const { blobs, log } = this.#deps
    if (this.#left.length === 0) {
      if (!(await this.#isOurs())) return false
      this.#left = await blobs.list(this.#nextPart)
      this.#nextPart = (this.#nextPart + 1) % partCount
    }
    for (const orphan of await this.#findOrphans(this.#left.splice(0, limit))) {
      await blobs.remove(orphan)
      log.info({ blob: orphan.name }, 'a blob that belongs to nothing was removed')
    }
    return this.#left.length > 0
  }

  /** A service that was started over another database by mistake must not take every blob for an orphan. */
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
    // Asked after the rows: a snapshot that is taken later does not name what has none now.
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
