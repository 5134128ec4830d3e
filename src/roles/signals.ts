// Wakes the loops that a commit gives work: those of this node at once, and those of other nodes by a notification.
import { KeyedSignal } from '../base/keyed-signal.ts'
import { Signal } from '../base/signal.ts'
import type { HeardWake, Wakes } from '../worker/wakes.ts'

/** Waking a loop whose role does not run here does nothing. */
export class Signals {
  /** Wakes the loop that files received mail. */
  readonly filing = new Signal()
  /** Wakes the fan-out to webhooks. */
  readonly fanOut = new Signal()
  /** Wakes the live streams. */
  readonly streams = new Signal()
  /** Wakes the poll of all waiting requests. */
  readonly waits = new Signal()
  /** Keyed by inbox id: wakes the requests that wait for its next message. */
  readonly grown = new KeyedSignal()
  readonly #others: Pick<Wakes, 'send'>

  constructor(others: Pick<Wakes, 'send'>) {
    this.#others = others
  }

  /** Mail was received. */
  received(): void {
    this.filing.wake()
    this.#others.send({ received: true })
  }

  /** Events may have been announced. The inboxes have messages that they did not have before. */
  announced(inboxIds: readonly string[] = []): void {
    this.fanOut.wake()
    this.streams.wake()
    this.grown.wake(inboxIds)
    this.#others.send({ announced: true })
  }

  /** Attachments have new verdicts. */
  scanned(): void {
    this.waits.wake()
    this.announced()
  }

  /** Another node committed work. One node is enough for work that its own loops do. */
  heard({ roles, received, announced }: Pick<HeardWake, 'roles' | 'received' | 'announced'>): void {
    if (received && !roles.includes('jobs')) this.filing.wake()
    if (!announced) return
    if (!roles.includes('webhooks')) this.fanOut.wake()
    this.streams.wake()
    this.waits.wake()
  }
}
