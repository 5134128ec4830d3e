// Lets a restored copy take the place of the original: from the next start on, mail and calls of webhooks go out of it.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import { findRestoration, type RestorationRow, releaseRestoration } from '../../store/restorations.ts'
import { operator, recordDeed } from '../audit.ts'

/** The restoration that is still held; null where nothing is. */
export async function findHold(db: Db): Promise<RestorationRow | null> {
  const found = await findRestoration(db)
  return found?.releasedAt === null ? found : null
}

/** Nodes that run go on holding until they are started again. */
export async function releaseCopy({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  const at = clock.now()
  const isReleased = await db.transaction(async (tx) => {
    if (!(await releaseRestoration(tx, at))) return false
    await recordDeed(tx, null, operator, { action: 'copy.released', subject: 'deployment', at })
    return true
  })
  if (!isReleased)
    throw new ServiceError('not_found', 'nothing is held here: this is no restored copy that waits')
}
