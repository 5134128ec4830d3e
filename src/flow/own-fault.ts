// Whose fault it is that a mail could not be read: ours, which says nothing of the mail, or its own.
import { NoThread } from '../mail/parse-pool.ts'
import { DbFault } from '../store/db.ts'

/** How long such a mail waits before it is looked at again. */
export const ownFaultWaitMs = 10_000

/** The database, the disk or the system failed over it, and may not the next time. */
export function isOwnFault(error: unknown): boolean {
  if (error instanceof DbFault) return error.kind === 'lost' || error.kind === 'conflict'
  return error instanceof NoThread || (error as NodeJS.ErrnoException).syscall !== undefined
}
