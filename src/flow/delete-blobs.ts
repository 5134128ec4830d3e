// Deletes the blobs of rows that are gone; while a backup is made they stay for the sweep, for its snapshot may name them.
import type { Blobs } from '../blobs/blobs.ts'
import type { Queryable } from '../postgres/db.ts'
import { isBackupUnderWay } from '../store/backups.ts'

/**
 * To be called once the deletion is committed: who finds no backup under way then has been seen to delete by every snapshot
 * that is taken later.
 */
export async function deleteBlobs(
  { db, blobs }: { db: Queryable; blobs: Blobs },
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return
  // Where that cannot be asked now they stay as well: the deletion itself is done.
  if (await isBackupUnderWay(db).catch(() => true)) return
  for (const key of keys) await blobs.delete(key)
}
