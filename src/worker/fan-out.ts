// Turns the outbox's rows into webhook deliveries, once all transactions older than theirs have ended.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { type Signal, unwokenPollMs } from '../base/signal.ts'
import type { Db } from '../postgres/db.ts'
import { fanOut } from '../store/events/webhook-deliveries.ts'
import { hasWebhooks } from '../store/events/webhooks.ts'
import { debounceMs, Loop } from './loop.ts'

interface FanOutOptions {
  db: Db
  clock: Clock
  log: Log
  /** Woken when events were added to the outbox. */
  signal: Signal
  /** Called with the endpoints that have new deliveries. */
  onDeliveries(webhooks: string[]): void
}

const batch = 2_000
/** Interval of the check for a first endpoint. While any endpoint exists, there is no check. */
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
    // A row cannot be read while older transactions run, usually for some milliseconds. Under load such a row always
    // exists. One batch per run is enough, because it has far more deliveries than can be called meanwhile.
    if (isMore) signal.wake()
    return false
  }
  return new Loop({ name: 'fan out', run, signal, intervalMs: unwokenPollMs, collectMs: debounceMs, log })
}
