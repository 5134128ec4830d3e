// The lock of a backup under way: an advisory lock, which ends with the session that makes the backup.
import type { Db, Queryable } from '../postgres/db.ts'
import { isLockOf, lockClasses } from '../postgres/locks.ts'

export interface BackupLock {
  /** Whether the lock is still held. A lost session has released it silently. */
  isHeld(): Promise<boolean>
  release(): void
}

/** Takes the lock; returns null if another backup has it. */
export async function lockBackup(db: Db): Promise<BackupLock | null> {
  const client = await db.dedicated()
  const ask = (sql: string) => client.query(sql, [lockClasses.backup])
  client.on('error', () => {}) // isHeld finds out at the end
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
        .catch(() => false), // a lost session holds no lock
    release: () => client.release(true),
  }
}

/** Whether a backup of this database is under way. */
export async function isBackupUnderWay(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ isUnderWay: boolean }>(
    `select exists (select from pg_locks l where ${isLockOf(lockClasses.backup)}) as "isUnderWay"`,
  )
  return row!.isUnderWay
}
