// Fails deliveries to disabled endpoints. Removes deleted endpoints, old deliveries and old events, in chunks.
import type { Clock } from '../../base/clock.ts'
import type { Db } from '../../postgres/db.ts'
import {
  failDisabled,
  mendOutbox,
  purgeDeletedWebhook,
  purgeDue,
  purgeOldDeliveries,
  purgeOutbox,
} from '../../store/events/webhook-deliveries.ts'

type Deps = { db: Db; clock: Clock }

const day = 86_400_000
/** How far back a stream can resume. */
const outboxMs = 7 * day
const unseenMs = 30 * day
const deliveriesMs = 30 * day
const chunk = 500
/** Holds if `purgeAnnounced` can do something. */
export const announcedPurgeDue = purgeDue({ outboxMs, deliveriesMs })

/**
 * Processes one chunk of each kind. True while there is more. `cursor` is the last delivery that this loop removed: the next
 * step does not read the index entries of removed rows again.
 */
export async function purgeAnnounced(
  { db, clock }: Deps,
  cursor: { last: string | null } = { last: null },
): Promise<boolean> {
  const before = (ms: number) => new Date(clock.nowMs() - ms)
  const counts = [
    await db.transaction((tx) => failDisabled(tx, chunk)),
    await db.transaction((tx) => purgeDeletedWebhook(tx, chunk)),
    await db.transaction((tx) => purgeOutbox(tx, before(outboxMs), before(unseenMs), chunk)),
  ]
  const old = { after: cursor.last, until: before(deliveriesMs) }
  cursor.last = await db.transaction((tx) => purgeOldDeliveries(tx, old, chunk))
  return cursor.last !== null || counts.some((count) => count >= chunk)
}

/** Repairs the outbox after the database was restored into another cluster. True if that was necessary. */
export async function restoreOutbox({ db }: Pick<Deps, 'db'>): Promise<boolean> {
  return await db.transaction((tx) => mendOutbox(tx))
}
