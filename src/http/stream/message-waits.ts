// Lets requests wait for the next message of an inbox, or for a scan verdict on a message's attachments.
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { FairLimit } from '../../base/fair-limit.ts'
import type { InboxId, KeyId, OrganizationId } from '../../base/ids.ts'
import type { KeyedSignal } from '../../base/keyed-signal.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { OutageLog } from '../../base/outage-log.ts'
import { divided } from '../../base/share.ts'
import { rest, Signal, unwokenPollMs } from '../../base/signal.ts'
import type { Caller } from '../../flow/caller.ts'
import { type Db, isLost } from '../../postgres/db.ts'
import { findGrown } from '../../store/mailbox/inboxes.ts'
import { findScanStates } from '../../store/mailbox/scans.ts'

export interface MessageWaitsOptions {
  db: Db
  clock: Clock
  log: Log
  /** The processes that divide the waiting requests of a key and of an organization. */
  workers?: number
  /** Woken by the id of an inbox that has a new message. */
  grown: KeyedSignal
  /** Woken when another node may have committed messages, or any node verdicts. */
  changed: Signal
}

/** An inbox that was read up to `afterSeq`, or a message whose attachments had these scan states. */
export type Watched = { inboxId: InboxId; afterSeq: number } | { messageId: string; scanStates: string }

/** A request whose first read found nothing. */
export interface WaitingRequest {
  caller: Caller
  watched: Watched
  waitMs: number
  response: ServerResponse
}

/**
 * One statement polls all watched inboxes: 8 ms for 1,000 of them. After a slow poll the next one starts later, so that
 * polling uses up to a fifth of a connection's time.
 */
const restShare = 4
/** The shortest time between two polls. Changes gather meanwhile. */
const pollGapMs = 20
/**
 * Concurrent reads. Otherwise a thousand requests woken together would queue at the database and delay all other work.
 */
const readsAtOnce = 4
/** The longest wait of a request. */
export const maxWaitSeconds = 60
const maxOfKey = 250
const maxOfOrganization = 1_000
const retrySeconds = 5

/** A waiting request holds only its connection. */
interface Waiter {
  organizationId: OrganizationId
  keyId: KeyId
  /** The state at the last wake. */
  watched: Watched
  signal: Signal
  /** Aborted when its client leaves or the node stops. */
  over: AbortController
}

/** Messages of this process wake waiting requests at once. A poll finds verdicts, and the changes of other nodes. */
export class MessageWaits {
  readonly #options: MessageWaitsOptions
  readonly #outage: OutageLog
  readonly #waiters = new Set<Waiter>()
  readonly #reads = new FairLimit(readsAtOnce)
  readonly #stop = new AbortController()
  #running: Promise<void> | null = null

  constructor(options: MessageWaitsOptions) {
    this.#options = options
    this.#outage = new OutageLog({ log: options.log, work: 'waiting requests' })
  }

  /**
   * Returns the result of `read`, which runs again whenever the watched state may have changed. Null if nothing came in
   * time, the client left, or the node stops. Refuses a request over the limit of its key or its organization.
   */
  async wait<Found>(request: WaitingRequest, read: () => Promise<Found | null>): Promise<Found | null> {
    this.#requireRoom(request.caller)
    const waiter = newWaiter(request)
    const end = this.#add(waiter, request.response)
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + request.waitMs
    try {
      for (;;) {
        await waiter.signal.wait(Math.max(0, untilMs - clock.monotonicMs()), waiter.over.signal)
        if (waiter.over.signal.aborted) return null
        const found = await this.#reads.run(waiter.organizationId, read)
        if (found !== null || clock.monotonicMs() >= untilMs) return found
      }
    } finally {
      end()
    }
  }

  /** Ends all waits. Their clients ask again, at another node or at this node once it runs again. */
  async stop(): Promise<void> {
    this.#stop.abort()
    for (const { over } of this.#waiters) over.abort()
    await this.#running
  }

  #requireRoom({ id, organizationId }: Caller): void {
    const { workers = 1 } = this.#options
    let [ofKey, ofOrganization] = [0, 0]
    for (const waiter of this.#waiters) {
      if (waiter.organizationId === organizationId) ofOrganization++
      if (waiter.keyId === id) ofKey++
    }
    if (ofKey >= divided(maxOfKey, workers))
      throw tooMany(`This key already has ${ofKey} waiting requests, which is the limit.`)
    if (ofOrganization >= divided(maxOfOrganization, workers))
      throw tooMany(`The organization already has ${ofOrganization} waiting requests, which is the limit.`)
  }

  #add(waiter: Waiter, response: ServerResponse): () => void {
    const { over, signal } = waiter
    const abort = () => over.abort()
    if (this.#stop.signal.aborted || response.destroyed) abort()
    response.once('close', abort)
    const { watched } = waiter
    const endListening =
      'inboxId' in watched ? this.#options.grown.listen(watched.inboxId, () => signal.wake()) : () => {}
    this.#waiters.add(waiter)
    // A message may have come between the first read and this moment.
    this.#options.changed.wake()
    meters.waiting.inc()
    this.#begin()
    return () => {
      meters.waiting.dec()
      endListening()
      response.off('close', abort)
      this.#waiters.delete(waiter)
    }
  }

  #begin(): void {
    if (this.#waiters.size === 0 || this.#stop.signal.aborted) return
    this.#running ??= this.#run().finally(() => {
      this.#running = null
      // A request may have arrived after the last poll, while `#running` was still set.
      this.#begin()
    })
  }

  async #run(): Promise<void> {
    const { signal: stop } = this.#stop
    while (this.#waiters.size > 0 && !stop.aborted) {
      const fromMs = performance.now()
      try {
        await this.#poll()
        this.#outage.succeed()
        await rest(Math.max(pollGapMs, restShare * (performance.now() - fromMs)), stop)
        await this.#options.changed.wait(unwokenPollMs, stop)
      } catch (error) {
        if (isLost(error)) this.#outage.fail(error)
        else this.#options.log.warn({ err: error }, 'waiting requests could not be checked; retrying')
        await rest(1_000, stop)
      }
    }
  }

  async #poll(): Promise<void> {
    await this.#wakeGrown()
    await this.#wakeScanned()
  }

  /** Wakes requests whose inboxes have new messages or are deleted. */
  async #wakeGrown(): Promise<void> {
    const seen = new Map<string, number>()
    for (const { watched } of this.#waiters)
      if ('inboxId' in watched)
        seen.set(watched.inboxId, Math.min(watched.afterSeq, seen.get(watched.inboxId) ?? watched.afterSeq))
    if (seen.size === 0) return
    const grown = new Map((await findGrown(this.#options.db, seen)).map(({ inboxId, seq }) => [inboxId, seq]))
    for (const { watched, signal } of this.#waiters) {
      const seq = 'inboxId' in watched ? grown.get(watched.inboxId) : undefined
      if (!('inboxId' in watched) || seq === undefined || (seq !== null && watched.afterSeq >= seq)) continue
      watched.afterSeq = seq ?? watched.afterSeq
      signal.wake()
    }
  }

  /** Wakes requests whose messages have a new verdict or are deleted. */
  async #wakeScanned(): Promise<void> {
    const ids = new Set<string>()
    for (const { watched } of this.#waiters) if ('messageId' in watched) ids.add(watched.messageId)
    if (ids.size === 0) return
    const found = await findScanStates(this.#options.db, [...ids])
    for (const { watched, signal } of this.#waiters) {
      if (!('messageId' in watched) || !ids.has(watched.messageId)) continue
      const states = found.get(watched.messageId)
      if (states === watched.scanStates) continue
      watched.scanStates = states ?? watched.scanStates
      signal.wake()
    }
  }
}

function newWaiter({ caller, watched }: WaitingRequest): Waiter {
  const { organizationId, id: keyId } = caller
  const [signal, over] = [new Signal(), new AbortController()]
  return { organizationId, keyId, watched: { ...watched }, signal, over }
}

function tooMany(words: string): ServiceError {
  return new ServiceError('rate_limited', `${words} Use GET /v1/events instead.`, retrySeconds)
}
