// Whose fault it is that something failed: that of what we stand on, which says nothing of the mail or the request.
import { NoThread } from '../base/thread-pool.ts'
import { type Blobs, NotOurStore } from '../blobs/blobs.ts'
import { NoBytes } from '../mail/parse-pool.ts'
import { ChangedFile } from '../mail/read/file-bytes.ts'
import { DbFault } from '../postgres/db.ts'

/** How long a mail that it hit waits before it is looked at again. */
export const ownFaultWaitMs = 10_000

/** The database, the disk or the system failed, and may not the next time. */
export function isOwnFault(error: unknown): boolean {
  if (error instanceof DbFault) return error.kind === 'lost' || error.kind === 'conflict'
  if (error instanceof NoThread || error instanceof NoBytes || error instanceof NotOurStore) return true
  return (error as NodeJS.ErrnoException | undefined)?.syscall !== undefined
}

/**
 * For what fails within a batch and is no fault of the database: as one of it, so that the batch is halved until the row that
 * it belongs to is alone, and the others do not wait for that.
 */
export function failAsFault(error: unknown): never {
  throw error instanceof DbFault ? error : new DbFault(error as Error)
}

/** Whether no waiting brings the bytes of a mail back: their blob was changed, or is missing from a folder that is there. */
export async function areBytesLost(error: unknown, blobs: Pick<Blobs, 'isThere'>): Promise<boolean> {
  if (error instanceof ChangedFile) return true
  return error instanceof NoBytes && error.code === 'ENOENT' && (await blobs.isThere())
}

/** Whether a mail could not be read for a fault of ours that may not be there the next time. */
export async function mayPass(error: unknown, blobs: Pick<Blobs, 'isThere'>): Promise<boolean> {
  return isOwnFault(error) && !(await areBytesLost(error, blobs))
}
