// Where a database came from a backup: which one, and whether what is in it may go out into the world.
import type { Queryable, Writer } from '../postgres/db.ts'

export interface RestorationRow {
  backupId: string
  /** The moment that the backup shows. */
  takenAt: Date
  restoredAt: Date
  /** Null: nothing leaves it yet. */
  releasedAt: Date | null
}

/** Null where the database did not come from a backup. */
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

/** False where there was nothing to release. */
export async function releaseRestoration(db: Writer, at: Date): Promise<boolean> {
  const rows = await db.query(
    'update restoration set released_at = $1 where released_at is null returning backup_id',
    [at],
  )
  return rows.length > 0
}
