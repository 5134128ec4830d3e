// Separates our own faults (database, disk, system) from faults of the mail or the request.
import { NoThread } from '../base/thread-pool.ts'
import { type Blobs, NoBlob, NotOurStore } from '../blobs/blobs.ts'
import { NoBytes } from '../mail/parse-pool.ts'
import { ChangedFile } from '../mail/read/file-bytes.ts'
import { DbFault } from '../postgres/db.ts'

/** How long a mail waits after such a fault before it is read again. */
export const ownFaultWaitMs = 10_000

/** The database, the disk or the system failed, and a retry may succeed. */
export function isOwnFault(error: unknown): boolean {
  if (error instanceof DbFault) return ['lost', 'conflict', 'damaged'].includes(error.kind)
  if (error instanceof NoThread || error instanceof NoBytes || error instanceof NoBlob) return true
  if (error instanceof NotOurStore) return true
  return (error as NodeJS.ErrnoException | undefined)?.syscall !== undefined
}

/**
 * Rethrows an error within a batch that is not the database's as a `DbFault`. The batch is then halved until the failing row
 * is alone, so the others do not wait for it.
 */
export function failAsFault(error: unknown): never {
  throw error instanceof DbFault ? error : new DbFault(error as Error)
}

/** Whether the bytes of a mail are lost for good: their blob was changed, or is missing although the folder is there. */
export async function areBytesLost(error: unknown, blobs: Pick<Blobs, 'isThere'>): Promise<boolean> {
  if (error instanceof ChangedFile) return true
  const isMissing = error instanceof NoBlob || (error instanceof NoBytes && error.code === 'ENOENT')
  return isMissing && (await blobs.isThere())
}

/** Whether a mail could not be read because of a fault of ours that may pass. */
export async function mayPass(error: unknown, blobs: Pick<Blobs, 'isThere'>): Promise<boolean> {
  return isOwnFault(error) && !(await areBytesLost(error, blobs))
}
