// Lets a restored copy replace the original: after the next start it sends mail and calls webhooks.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import { findRestoration, type RestorationRow, releaseRestoration } from '../../store/restorations.ts'
import { operator, recordAction } from '../audit.ts'

/** The restoration that is still on hold, or null. */
export async function findHold(db: Db): Promise<RestorationRow | null> {
  const found = await findRestoration(db)
  return found?.releasedAt === null ? found : null
}

/** Running nodes stay on hold until they are restarted. */
export async function releaseCopy({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  const at = clock.now()
  const isReleased = await db.transaction(async (tx) => {
    if (!(await releaseRestoration(tx, at))) return false
    await recordAction(tx, null, operator, { action: 'copy.released', subject: 'deployment', at })
    return true
  })
  if (!isReleased)
    throw new ServiceError('not_found', 'this is not a restored copy, so there is nothing to release')
}
