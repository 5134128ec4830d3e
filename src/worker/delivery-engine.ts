// Owns destination queues for this node: takes them over, keeps their leases, lets them go.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Db } from '../store/db.ts'
import { nodeLockClass } from '../store/nodes.ts'
import { acquireRoutes, type RouteRow, reclaimOrphans, releaseRoute, renewRoutes } from '../store/routes.ts'
import { Loop } from './loop.ts'
import type { Membership } from './membership.ts'
import { type RouteVerbs, RouteWorker } from './route-worker.ts'

export interface DeliveryEngineOptions<Job> {
  db: Db
  clock: Clock
  log: Log
  membership: Membership
  /** The verbs for one route under one lease; `mayFinish` turns false before the lease runs out. */
  verbsFor(lease: { route: string; epoch: number }, mayFinish: () => boolean): RouteVerbs<Job>
  maxLinesOf(route: string): number
  retryScheduleMs: number[]
}

interface Held<Job> {
  epoch: number
  leaseUntilMs: number
  worker: RouteWorker<Job>
  ended: Promise<void>
}

const leaseMs = 15_000
const renewIntervalMs = 3_000
/** A message is not finished when less than this is left of the lease. */
const leaseMarginMs = 2_000
const acquireIntervalMs = 1_000
/** How long after a look through all queues only those are looked at that are known to have work. */
const lookAgainMs = 900
const acquireAtOnce = 50
const maxRoutes = 500
const lingerMs = 1_000

/** The delivery role of a node. Leases live in real time, whatever tests do to the clock. */
export class DeliveryEngine<Job> {
  readonly #options: DeliveryEngineOptions<Job>
  readonly #held = new Map<string, Held<Job>>()
  readonly #acquiring: Loop
  readonly #renewing: Loop
  readonly #hinted = new Set<string>()
  #lookedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: DeliveryEngineOptions<Job>) {
    this.#options = options
    const { log, membership } = options
    // Others see our lock gone and take over: nothing of ours may go on under the old number.
    membership.onLost(() => this.#held.forEach(({ worker }) => void worker.cut()))
    this.#acquiring = new Loop({
      name: 'acquire routes',
      run: () => this.#acquire(),
      intervalMs: acquireIntervalMs,
      log,
    })
    this.#renewing = new Loop({
      name: 'renew leases',
      run: () => this.#renew(),
      intervalMs: renewIntervalMs,
      log,
    })
  }

  start(): void {
    this.#acquiring.start()
    this.#renewing.start()
  }

  /** These routes have work. */
  wake(routes: readonly string[]): void {
    for (const route of routes) {
      const held = this.#held.get(route)
      if (held) held.worker.wake()
      else this.#hint(route)
    }
  }

  #hint(route: string): void {
    this.#hinted.add(route)
    this.#acquiring.wake()
  }

  /** Takes no new work; what is on the wire ends within `graceMs` or is cut. Routes are given up at once after. */
  async stop(graceMs: number): Promise<void> {
    await this.#acquiring.stop()
    const held = [...this.#held.values()]
    for (const { worker } of held) worker.stop()
    const cut = setTimeout(() => held.forEach(({ worker }) => void worker.cut()), graceMs)
    await Promise.all(held.map(({ ended }) => ended))
    clearTimeout(cut)
    await this.#renewing.stop()
  }

  /** Looks through all queues once a second; in between only at those that are known to have work. */
  async #acquire(): Promise<boolean> {
    const { db, clock, membership } = this.#options
    const { nodeId } = membership
    const limit = Math.min(maxRoutes - this.#held.size, acquireAtOnce)
    if (nodeId === null || limit <= 0) return false
    const askedMs = performance.now()
    const among = askedMs - this.#lookedAtMs < lookAgainMs ? [...this.#hinted] : null
    if (among?.length === 0) return false
    this.#hinted.clear()
    const owner = { nodeId, leaseMs, lockClass: nodeLockClass }
    const routes = await acquireRoutes(db, owner, clock.now(), { among, limit })
    if (membership.nodeId !== nodeId) return true
    const isMore = routes.length === limit
    if (isMore) this.#lookedAtMs = Number.NEGATIVE_INFINITY
    else if (!among) this.#lookedAtMs = askedMs
    for (const route of routes) this.#hold(nodeId, route, askedMs + leaseMs)
    return isMore || this.#hinted.size > 0
  }

  #hold(nodeId: number, route: RouteRow, leaseUntilMs: number): void {
    const { verbsFor, maxLinesOf, retryScheduleMs, clock, log } = this.#options
    const mayFinish = () =>
      this.#held.get(route.key) === held && performance.now() < held.leaseUntilMs - leaseMarginMs
    const verbs = verbsFor({ route: route.key, epoch: route.epoch }, mayFinish)
    const worker = new RouteWorker({
      route,
      maxLines: maxLinesOf(route.key),
      lingerMs,
      retryScheduleMs,
      clock,
      log,
      verbs,
    })
    const held: Held<Job> = { epoch: route.epoch, leaseUntilMs, worker, ended: Promise.resolve() }
    // An own lease that had run out: what still goes on under its epoch is void.
    this.#held.get(route.key)?.worker.cut()
    this.#held.set(route.key, held)
    held.ended = this.#work(nodeId, route, held, verbs)
  }

  async #work(nodeId: number, route: RouteRow, held: Held<Job>, verbs: RouteVerbs<Job>): Promise<void> {
    const { db, clock, log } = this.#options
    try {
      const orphans = await reclaimOrphans(db, route, clock.now())
      if (orphans > 0) log.info({ route: route.key, orphans }, 'took back what a lost owner had on the wire')
      await held.worker.run()
    } catch (error) {
      log.warn({ err: error, route: route.key }, 'a destination queue was interrupted')
    }
    // Let go of before its results are recorded, the route's next owner would send those messages again.
    await verbs.recorded()
    await releaseRoute(db, nodeId, route).catch(() => {}) // the lease runs out by itself
    if (this.#held.get(route.key) !== held) return
    this.#held.delete(route.key)
    if (held.worker.isWoken) this.#hint(route.key)
  }

  async #renew(): Promise<boolean> {
    const { nodeId } = this.#options.membership
    if (nodeId === null || this.#held.size === 0) return false
    const held = [...this.#held].map(([key, { epoch }]) => ({ key, epoch }))
    const askedMs = performance.now()
    const renewed = new Map(
      (await renewRoutes(this.#options.db, nodeId, held, leaseMs)).map((route) => [route.key, route]),
    )
    for (const { key, epoch } of held) {
      const current = this.#held.get(key)
      if (current?.epoch !== epoch) continue
      const route = renewed.get(key)
      if (!route) current.worker.cut()
      else {
        current.leaseUntilMs = askedMs + leaseMs
        current.worker.heed(route)
      }
    }
    return false
  }
}
