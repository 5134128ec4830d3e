// The advisory locks of a database, each class by the number that its word is: one table for TypeScript and SQL.
import type { Db } from './db.ts'

const numberOf = (word: string) => Number.parseInt(Buffer.from(word).toString('hex'), 16)

/** `tests/fences/locks.test.ts` finds the numbers that stand in SQL here. */
export const lockClasses = {
  /** Who brings the schema up to date. */
  migration: numberOf('post'),
  /** Who uses the embedded server, held in its database `postgres`. */
  embedded: numberOf('shar'),
  /** A node that is up, by its number. */
  node: numberOf('node'),
  /** A service in its data folder, by the folder's number. */
  folder: numberOf('fold'),
  /** Who claims work, by its kind. */
  work: numberOf('work'),
  /** Who counts and adds mail that is kept for the service. */
  report: numberOf('kept'),
  /** Who writes the index of words. */
  words: numberOf('wrds'),
  /** Who orders a certificate. */
  certificate: numberOf('cert'),
  /** Who makes a backup: while it is held, blobs that no row names any more stay. */
  backup: numberOf('save'),
  /** Who folds metrics. */
  metrics: numberOf('metric'),
  /** Who counts evaluations of DMARC. */
  dmarc: numberOf('dmrc'),
  /** Who opens the inbox that the service writes to people from. */
  ownInbox: numberOf('acct'),
}

/** That `l` of pg_locks is of the class, and of this database: the server shows those of all. */
export function isLockOf(lockClass: number): string {
  return `l.locktype = 'advisory' and l.objsubid = 2 and l.classid = ${lockClass}
  and l.database = (select oid from pg_database where datname = current_database())`
}

/**
 * Holds the lock of the class, of one of many where it has a number, on a connection of its own; null while somebody else
 * has it. It falls with the process, and with the database, as everything else that could be done.
 */
export async function holdLock(db: Db, lockClass: number, number = 0): Promise<{ release(): void } | null> {
  const client = await db.dedicated()
  const { rows } = await client.query('select pg_try_advisory_lock($1, $2) as mine', [lockClass, number])
  // A connection that is closed holds no lock.
  if (rows[0].mine) return { release: () => client.release(true) }
  client.release()
  return null
}
