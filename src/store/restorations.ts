// The restoration of a database from a backup: which backup, and whether mail and calls may go out again.
import type { Queryable, Writer } from '../postgres/db.ts'

export interface RestorationRow {
  backupId: string
  /** The time of the data in the backup. */
  takenAt: Date
  restoredAt: Date
  /** Null: nothing may go out yet. */
  releasedAt: Date | null
}

/** Returns null if the database did not come from a backup. */
export async function findRestoration(db: Queryable): Promise<RestorationRow | null> {
  const [row] = await db.query<RestorationRow>(
    `select backup_id as "backupId", taken_at as "takenAt", restored_at as "restoredAt", released_at as "releasedAt"
    from restoration`,
  )
  return row ?? null
}

export async function insertRestoration(
  db: Writer,
  { backupId, takenAt, restoredAt }: Omit<RestorationRow, 'releasedAt'>,
): Promise<void> {
  await db.query('insert into restoration (backup_id, taken_at, restored_at) values ($1, $2, $3)', [
    backupId,
    takenAt,
    restoredAt,
  ])
}

/** Returns false if there was nothing to release. */
export async function releaseRestoration(db: Writer, at: Date): Promise<boolean> {
  const rows = await db.query(
    'update restoration set released_at = $1 where released_at is null returning backup_id',
    [at],
  )
  return rows.length > 0
}
