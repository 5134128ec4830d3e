// Marks the blob folder as our database's, once in the life of the database.
import type { Blobs } from '../blobs/blobs.ts'
import type { Db, Tx } from '../postgres/db.ts'
import { lockIdentity, noteBlobFolder } from '../store/database-identity.ts'
import { findNewestBlobs } from '../store/mailbox/raws.ts'

interface ClaimDeps {
  db: Db
  blobs: Blobs
}

/** How many of the newest blobs are searched in an unmarked folder. A single one may be about to be deleted. */
const checkedAt = 16

/**
 * Marks the folder, unless this database has marked one before. In that case an unmarked folder is one whose disk is not
 * mounted yet. Rejects with errors of the database and the disk.
 */
export async function claimBlobFolder({ db, blobs }: ClaimDeps): Promise<void> {
  await db.transaction(async (tx) => {
    // If nodes start at once with different folders, one of them marks its folder and the others do not.
    const { id, hasBlobFolder } = await lockIdentity(tx)
    if (hasBlobFolder) return
    const owner = await blobs.owner()
    if (owner !== id) {
      if (owner !== null || !(await holdsNewest(tx, blobs))) return
      await blobs.claim(id)
    }
    await noteBlobFolder(tx)
  })
}

/** Whether there are no blobs yet, or at least one of the newest is in the folder. */
async function holdsNewest(tx: Tx, blobs: Blobs): Promise<boolean> {
  const newest = await findNewestBlobs(tx, checkedAt)
  const found = await Promise.all(newest.map((blob) => blobs.has(blob)))
  return newest.length === 0 || found.includes(true)
}
