// Deletes the blobs of deleted rows. During a backup they stay for the sweep, as its snapshot may name them.
import { type Blobs, NotOurStore } from '../blobs/blobs.ts'
import type { Queryable } from '../postgres/db.ts'
import { isBackupUnderWay } from '../store/backups.ts'

/** Must be called after the deletion has committed. If no backup runs then, every later snapshot sees the deletion. */
export async function deleteBlobs(
  { db, blobs }: { db: Queryable; blobs: Blobs },
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return
  // If the database does not answer, the blobs stay too: the deletion itself is done.
  if (await isBackupUnderWay(db).catch(() => true)) return
  for (const key of keys) if (!(await deleteUnnamed({ blobs }, key))) return
}

/** Deletes a blob that no row names. Returns false if the store does not answer: the sweep deletes it later. */
export async function deleteUnnamed({ blobs }: { blobs: Blobs }, key: string): Promise<boolean> {
  try {
    await blobs.delete(key)
    return true
  } catch (error) {
    if (error instanceof NotOurStore) return false
    throw error
  }
}
