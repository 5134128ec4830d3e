// The advisory locks of a database. Each class is a number, made from a word, and used by TypeScript and SQL.
import type { Db } from './db.ts'

const numberOf = (word: string) => Number.parseInt(Buffer.from(word).toString('hex'), 16)

/** `tests/fences/locks.test.ts` checks that SQL functions use no other numbers. */
export const lockClasses = {
  /** Bringing the schema up to date. */
  migration: numberOf('post'),
  /** A share in the embedded server; held in its database `postgres`. */
  embedded: numberOf('shar'),
  /** A running node, by its number. */
  node: numberOf('node'),
  /** A service in its data folder, by the folder's number. */
  folder: numberOf('fold'),
  /** Claiming work, by its kind. */
  work: numberOf('work'),
  /** Counting and adding mail to the service's own addresses, such as postmaster (`kept_mail`). */
  report: numberOf('kept'),
  /** Writing the word index. */
  words: numberOf('wrds'),
  /** Ordering a certificate. */
  certificate: numberOf('cert'),
  /** Making a backup. While this lock is held, blobs that no row names any more are kept. */
  backup: numberOf('save'),
  /** Folding metric deltas into the roll-ups. */
  metrics: numberOf('metric'),
  /** Counting DMARC evaluations for reports. */
  dmarc: numberOf('dmrc'),
  /** Counting sessions for reports about TLS. */
  tlsReports: numberOf('tlsr'),
  /** Creating the organization and inbox from which the service writes to people. */
  ownInbox: numberOf('acct'),
}

/** Returns an SQL condition: `l` of pg_locks is of this class and this database. pg_locks has all databases. */
export function isLockOf(lockClass: number): string {
  return `l.locktype = 'advisory' and l.objsubid = 2 and l.classid = ${lockClass}
  and l.database = (select oid from pg_database where datname = current_database())`
}

/**
 * Takes the class's lock (of `number`, if the class has several) on its own connection. Returns null if another process
 * holds it. The lock ends when this process ends, or when its connection to the database is lost.
 */
export async function holdLock(db: Db, lockClass: number, number = 0): Promise<{ release(): void } | null> {
  const client = await db.dedicated()
  const { rows } = await client.query('select pg_try_advisory_lock($1, $2) as mine', [lockClass, number])
  // Closing the connection releases the lock.
  if (rows[0].mine) return { release: () => client.release(true) }
  client.release()
  return null
}
