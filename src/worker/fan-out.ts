// Turns the outbox's rows into webhook deliveries, as soon as they may be read.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { othersPollMs, type Signal } from '../base/signal.ts'
import type { Db } from '../postgres/db.ts'
import { fanOut } from '../store/events/webhook-deliveries.ts'
import { hasWebhooks } from '../store/events/webhooks.ts'
import { debounceMs, Loop } from './loop.ts'

interface FanOutOptions {
  db: Db
  clock: Clock
  log: Log
  /** Woken when something was announced. */
  signal: Signal
  /** Called with the endpoints that have new deliveries. */
  onDeliveries(webhooks: string[]): void
}

const batch = 2_000
/** While no endpoint exists, this only checks for one, this often. After the first endpoint it no longer waits. */
const unwantedMs = 1_000

/** Runs on every node with the webhooks role. One node works at a time; the others find nothing to do. */
export function createFanOut({ db, clock, log, signal, onDeliveries }: FanOutOptions): Loop {
  let [hasEndpoints, askedMs] = [false, Number.NEGATIVE_INFINITY]
  const askForEndpoints = async () => {
    if (performance.now() - askedMs < unwantedMs) return false
    askedMs = performance.now()
    return await hasWebhooks(db)
  }
  const run = async () => {
    hasEndpoints ||= await askForEndpoints()
    if (!hasEndpoints) return false
    const { isMore, isWanted, webhooks } = await fanOut(db.writer, batch, clock.now())
    hasEndpoints = isWanted
    if (webhooks.length > 0) onDeliveries(webhooks)
    // A row waits for every transaction that began before its own ended, usually for some milliseconds. Under load one
    // always waits, and a batch each time is far more than can be called.
    if (isMore) signal.wake()
    return false
  }
  return new Loop({ name: 'fan out', run, signal, intervalMs: othersPollMs, collectMs: debounceMs, log })
}
