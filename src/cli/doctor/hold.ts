// The doctor's check of a restored copy: whether mail and webhook calls leave it.
import { holdWords, releaseMend } from '../../config/settings.ts'
import type { Foundation } from '../../foundation.ts'
import { findRestoration } from '../../store/restorations.ts'
import { type Check, ok, warning } from './checks.ts'

const name = 'restored copy'

/** No check if the database was not restored from a backup. */
export async function checkHold({ db, hold }: Pick<Foundation, 'db' | 'hold'>): Promise<Check[]> {
  const found = await findRestoration(db)
  if (!found) return []
  const from = `backup of ${found.takenAt.toISOString()}`
  if (!found.releasedAt) return [warning(name, `${from}, held: ${holdWords}`, releaseMend)]
  if (hold) return [warning(name, `${from}, released, but this node still holds it`, 'restart this node')]
  return [ok(name, `${from}, released ${found.releasedAt.toISOString()}`)]
}
