// Calls customers' endpoints for this node: takes them over, keeps their leases, lets them go.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Db } from '../postgres/db.ts'
import { acquireWebhooks, releaseWebhook, renewWebhooks, type WebhookLease } from '../store/webhooks.ts'
import { CallBudget, type EndpointVerbs, EndpointWorker } from './endpoint-worker.ts'
import { Loop } from './loop.ts'
import type { Membership } from './membership.ts'

export interface WebhookEngineOptions<Call extends { id: string }> {
  db: Db
  clock: Clock
  log: Log
  membership: Membership
  verbsFor(lease: WebhookLease): EndpointVerbs<Call>
}

interface Held<Call extends { id: string }> {
  lease: WebhookLease
  leaseUntilMs: number
  worker: EndpointWorker<Call>
  ended: Promise<void>
}

const leaseMs = 15_000
const renewIntervalMs = 3_000
/** Nothing is called any more when less than this is left of the lease. */
const leaseMarginMs = 2_000
const acquireIntervalMs = 1_000
/** How long after a poll of all endpoints only those are polled that are known to have work. */
const pollIntervalMs = 900
const acquireAtOnce = 100
const maxEndpoints = 2_000
const idleMs = 3_000
const budget = { calls: 2_000, slowCalls: 1_500 }

/** The webhooks role of a node. Leases live in real time, whatever tests do to the clock. */
export class WebhookEngine<Call extends { id: string }> {
  readonly #options: WebhookEngineOptions<Call>
  readonly #held = new Map<string, Held<Call>>()
  readonly #hinted = new Set<string>()
  readonly #budget = new CallBudget(budget)
  readonly #acquiring: Loop
  readonly #renewing: Loop
  #polledAtMs = Number.NEGATIVE_INFINITY

  constructor(options: WebhookEngineOptions<Call>) {
    this.#options = options
    const { log } = options
    const [acquire, renew] = [() => this.#acquire(), () => this.#renew()]
    this.#acquiring = new Loop({ name: 'acquire webhooks', run: acquire, intervalMs: acquireIntervalMs, log })
    this.#renewing = new Loop({ name: 'renew webhooks', run: renew, intervalMs: renewIntervalMs, log })
  }

  start(): void {
    this.#acquiring.start()
    this.#renewing.start()
  }

  /** These endpoints have work. */
  wake(webhooks: readonly string[]): void {
    for (const webhook of webhooks) {
      const held = this.#held.get(webhook)
      if (held) held.worker.wake()
      else this.#hinted.add(webhook)
    }
    if (this.#hinted.size > 0) this.#acquiring.wake()
  }

  /** The node is taken for dead by others: nothing may go on under its old number. */
  cut(): void {
    for (const { worker } of this.#held.values()) worker.cut()
  }

  /** Begins no call; those under way end within `graceMs` or are cut, to be made again. */
  async stop(graceMs: number): Promise<void> {
    await this.#acquiring.stop()
    const held = [...this.#held.values()]
    for (const { worker } of held) worker.stop()
    const timer = setTimeout(() => this.cut(), graceMs)
    await Promise.all(held.map(({ ended }) => ended))
    clearTimeout(timer)
    await this.#renewing.stop()
  }

  async #acquire(): Promise<boolean> {
    const { db, clock, membership } = this.#options
    const { nodeId } = membership
    const limit = Math.min(maxEndpoints - this.#held.size, acquireAtOnce)
    if (nodeId === null || limit <= 0) return false
    const askedMs = performance.now()
    const among = askedMs - this.#polledAtMs < pollIntervalMs ? [...this.#hinted] : null
    if (among?.length === 0) return false
    this.#hinted.clear()
    const owner = { nodeId, leaseMs }
    const leases = await acquireWebhooks(db.writer, owner, clock.now(), { among, limit })
    if (membership.nodeId !== nodeId) return true
    const isMore = leases.length === limit
    if (isMore) this.#polledAtMs = Number.NEGATIVE_INFINITY
    else if (!among) this.#polledAtMs = askedMs
    for (const lease of leases) this.#hold(nodeId, lease, askedMs + leaseMs)
    return isMore || this.#hinted.size > 0
  }

  #hold(nodeId: number, lease: WebhookLease, leaseUntilMs: number): void {
    const { verbsFor, clock, log } = this.#options
    const verbs = verbsFor(lease)
    const onError = (error: unknown) =>
      log.error({ err: error, webhook: lease.webhook }, 'a webhook call failed')
    const worker = new EndpointWorker({
      ...{ clock, budget: this.#budget, idleMs, onError },
      verbs: {
        ...verbs,
        claim: (limit, except) => (isOurs() ? verbs.claim(limit, except) : Promise.resolve([])),
      },
    })
    const held: Held<Call> = { lease, leaseUntilMs, worker, ended: Promise.resolve() }
    const isOurs = () => {
      const isLeft = performance.now() < held.leaseUntilMs - leaseMarginMs
      if (!isLeft) worker.cut()
      return isLeft
    }
    // An own lease that had run out: what still goes on under its epoch is void.
    this.#held.get(lease.webhook)?.worker.cut()
    this.#held.set(lease.webhook, held)
    held.ended = this.#work(nodeId, held)
  }

  async #work(nodeId: number, held: Held<Call>): Promise<void> {
    const { lease, worker } = held
    try {
      await worker.run()
    } catch (error) {
      this.#options.log.warn(
        { err: error, webhook: lease.webhook },
        'the calls of an endpoint were interrupted',
      )
    }
    await releaseWebhook(this.#options.db.writer, nodeId, lease).catch(() => {}) // the lease runs out by itself
    if (this.#held.get(lease.webhook) !== held) return
    this.#held.delete(lease.webhook)
    if (worker.isWoken) this.wake([lease.webhook])
  }

  async #renew(): Promise<boolean> {
    const { nodeId } = this.#options.membership
    if (nodeId === null || this.#held.size === 0) return false
    const leases = [...this.#held.values()].map(({ lease }) => lease)
    const askedMs = performance.now()
    const renewed = await renewWebhooks(this.#options.db.writer, nodeId, leases, leaseMs)
    const epochs = new Map(renewed.map(({ webhook, epoch }) => [webhook, epoch]))
    for (const { webhook, epoch } of leases) {
      const current = this.#held.get(webhook)
      if (current?.lease.epoch !== epoch) continue
      if (epochs.get(webhook) === epoch) current.leaseUntilMs = askedMs + leaseMs
      else current.worker.cut()
    }
    return false
  }
}
