// Turns the outbox's rows into webhook deliveries, once all transactions older than theirs have ended.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Signal } from '../base/signal.ts'
import type { Db } from '../postgres/db.ts'
import { fanOut, fanOutDue } from '../store/events/webhook-deliveries.ts'
import type { DueWork } from './due-work.ts'
import { debounceMs, Loop } from './loop.ts'

interface FanOutOptions {
  db: Db
  clock: Clock
  log: Log
  dueWork: Pick<DueWork, 'watch'>
  /** Woken when events were added to the outbox. */
  signal: Signal
  /** Called with the endpoints that have new deliveries. */
  onDeliveries(webhooks: string[]): void
}

const batch = 2_000

/** Runs on every node with the webhooks role. One node works at a time; the others find nothing to do. */
export function createFanOut({ db, clock, log, dueWork, signal, onDeliveries }: FanOutOptions): Loop {
  // The first run finds out. Without an endpoint a wake-up costs no statement, until the poll for due work finds an event
  // for the first endpoint.
  let hasEndpoints = true
  const run = async () => {
    if (!hasEndpoints) return false
    const { isMore, isWanted, webhooks } = await fanOut(db.writer, batch, clock.now())
    hasEndpoints = isWanted
    if (webhooks.length > 0) onDeliveries(webhooks)
    // A row cannot be read while older transactions run, usually for some milliseconds. Under load such a row always
    // exists. One batch per run is enough, because it has far more deliveries than can be called meanwhile.
    if (isMore) signal.wake()
    return false
  }
  dueWork.watch(fanOutDue, () => {
    hasEndpoints = true
    signal.wake()
  })
  return new Loop({ name: 'fan out', run, signal, collectMs: debounceMs, log })
}
