// A backup under way: an advisory lock, so that it is over with the session of who makes it.
import type { Db, Queryable } from '../postgres/db.ts'
import { isLockOf, lockClasses } from '../postgres/locks.ts'

export interface BackupLock {
  /** Whether it is held still: a session that was lost has let go of it without a word. */
  isHeld(): Promise<boolean>
  release(): void
}

/** Takes the lock; null where another backup has it. */
export async function lockBackup(db: Db): Promise<BackupLock | null> {
  const client = await db.dedicated()
  const ask = (sql: string) => client.query(sql, [lockClasses.backup])
  client.on('error', () => {}) // asked about at the end
  try {
    const { rows } = await ask('select pg_try_advisory_lock($1, 0) as mine')
    if (!rows[0].mine) {
      client.release()
      return null
    }
  } catch (error) {
    client.release(true)
    throw error
  }
  const isOurs = 'select from pg_locks where classid = $1 and objid = 0 and pid = pg_backend_pid()'
  return {
    isHeld: () =>
      ask(isOurs)
        .then(({ rowCount }) => rowCount === 1)
        .catch(() => false), // nothing holds it then
    release: () => client.release(true),
  }
}

/** Whether somebody makes a backup of this database. */
export async function isBackupUnderWay(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ isUnderWay: boolean }>(
    `select exists (select from pg_locks l where ${isLockOf(lockClasses.backup)}) as "isUnderWay"`,
  )
  return row!.isUnderWay
}
