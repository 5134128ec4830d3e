// Marks the blob folder as our database's, once in the life of the database.
import type { Blobs } from '../blobs/blobs.ts'
import type { Db, Tx } from '../postgres/db.ts'
import { lockIdentity, noteBlobFolder } from '../store/database-identity.ts'
import { findNewestBlobs } from '../store/mailbox/raws.ts'

interface ClaimDeps {
  db: Db
  blobs: Blobs
}

/** So many blobs are looked for in a folder without a mark: of one alone the row may be about to go. */
const checkedAt = 16

/**
 * Marks the folder, unless one was marked before: a folder without a mark is then the one that a disk is to be mounted on.
 * Rejects as database and disk do.
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

/** Whether there is no blob yet, or one of the newest is in the folder. */
async function holdsNewest(tx: Tx, blobs: Blobs): Promise<boolean> {
  const newest = await findNewestBlobs(tx, checkedAt)
  const found = await Promise.all(newest.map((blob) => blobs.has(blob)))
  return newest.length === 0 || found.includes(true)
}
