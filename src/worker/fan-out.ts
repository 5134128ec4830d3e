// Turns what the outbox holds into webhook deliveries, as soon as it may be read.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Signal } from '../base/signal.ts'
import type { Db } from '../postgres/db.ts'
import { fanOut } from '../store/webhook-deliveries.ts'
import { Loop } from './loop.ts'

interface FanOutOptions {
  db: Db
  clock: Clock
  log: Log
  /** Something was announced. */
  signal: Signal
  /** These endpoints have new deliveries. */
  onDeliveries(webhooks: string[]): void
}

const batch = 2_000
const intervalMs = 250
/**
 * A row waits for every transaction that began before its own ended: usually for some milliseconds. Under load there is
 * always one that waits, and a batch each time is far more than can be called.
 */
const behindMs = 15
/** Where there is no endpoint each poll only moves the cursor; one that is new waits no longer than on a node nobody wakes. */
const unwantedMs = intervalMs
const collectMs = 20

/** Runs on every node with the webhooks role; one of them works at a time, the others find nothing to do. */
export function createFanOut({ db, clock, log, signal, onDeliveries }: FanOutOptions): Loop {
  const run = async () => {
    const { taken, isBehind, isWanted, webhooks } = await fanOut(db.writer, batch, clock.now())
    if (webhooks.length > 0) onDeliveries(webhooks)
    if (isBehind) await sleep(isWanted || taken >= batch ? behindMs : unwantedMs)
    return isBehind
  }
  return new Loop({ name: 'fan out', run, signal, intervalMs, collectMs, log })
}
