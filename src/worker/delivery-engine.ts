// Owns destination queues for this node: takes them over, keeps their leases, lets them go.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Db } from '../postgres/db.ts'
import {
  acquireRoutes,
  type Candidate,
  findAmong,
  findOrphaned,
  type Owner,
  type RouteRow,
  reclaimOrphans,
  releaseRoute,
  renewRoutes,
  type WalkCursor,
  walkQueues,
} from '../store/routes.ts'
import { Loop } from './loop.ts'
import type { Membership } from './membership.ts'
import { chooseRoutes, type Holding } from './route-choice.ts'
import { type RouteVerbs, RouteWorker } from './route-worker.ts'

export interface DeliveryEngineOptions<Job> {
  db: Db
  clock: Clock
  log: Log
  membership: Membership
  /** The verbs for one route under one lease; `mayFinish` becomes false before the lease runs out. */
  verbsFor(lease: { route: string; epoch: number }, mayFinish: () => boolean): RouteVerbs<Job>
  maxConnectionsOf(route: string): number
  /** Routes that are always taken over: those that do not depend on what strangers run. */
  ownRoutes: readonly string[]
  /** Routes that are left alone, whatever waits in them. */
  isHeldBack(route: string): boolean
  retryScheduleMs: number[]
}

interface Held<Job> {
  /** For whose mail it was taken over; null for our own routes. */
  organizationId: string | null
  epoch: number
  leaseUntilMs: number
  worker: RouteWorker<Job>
  ended: Promise<void>
}

const leaseMs = 15_000
const renewIntervalMs = 3_000
/** A message is not finished when less than this is left of the lease. */
const leaseMarginMs = 2_000
const acquireIntervalMs = 100
/** Between two walks through all queues; one that is long is made in steps, an acquire interval between them. */
const walkIntervalMs = 900
const walkStep = 1_000
const amongAtOnce = 200
const acquireAtOnce = 50
const idleTimeoutMs = 1_000

/** The delivery role of a node. Leases live in real time, whatever tests do to the clock. */
export class DeliveryEngine<Job> {
  readonly #options: DeliveryEngineOptions<Job>
  readonly #held = new Map<string, Held<Job>>()
  readonly #acquiring: Loop
  readonly #renewing: Loop
  readonly #hinted = new Set<string>()
  #walkFrom: WalkCursor | null = null
  #walkedAtMs = Number.NEGATIVE_INFINITY
  /** How many slots were taken when there was none for some that were found; 0 where there was. */
  #short = 0

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

  /** Takes over what it finds and has a slot for; our own queues need none. */
  async #acquire(): Promise<boolean> {
    const { db, clock, membership, ownRoutes, isHeldBack } = this.#options
    const { nodeId } = membership
    if (nodeId === null) return false
    const owner = { nodeId, leaseMs }
    const candidates = (await this.#find(owner)).filter(({ key }) => !isHeldBack(key))
    if (candidates.length === 0) return this.#hinted.size > 0
    const [own, others] = partition(candidates, ({ key }) => ownRoutes.includes(key))
    const chosen = chooseRoutes(others, this.#holdings(), acquireAtOnce)
    const purposes = new Map<string, string | null>(
      chosen.map(({ key, organizationId }) => [key, organizationId]),
    )
    const isShort = others.some(({ key }) => !purposes.has(key))
    for (const { key } of own) purposes.set(key, null)
    const askedMs = performance.now()
    const routes =
      purposes.size > 0 ? await acquireRoutes(db.writer, owner, clock.now(), [...purposes.keys()]) : []
    if (membership.nodeId !== nodeId) return true
    for (const route of routes) this.#hold(nodeId, route, purposes.get(route.key)!, askedMs + leaseMs)
    if (isShort) this.#short = chosen.length < acquireAtOnce ? this.#slots : Number.POSITIVE_INFINITY
    return this.#hinted.size > 0
  }

  /** Queues that are known to have work at once; all queues once a second, and once there is a slot again. */
  async #find(owner: Owner): Promise<Candidate[]> {
    const { db, clock, ownRoutes } = this.#options
    const isWalk = this.#isTimeToWalk
    const own = ownRoutes.filter((route) => this.#hinted.has(route) || (isWalk && !this.#held.has(route)))
    const hinted = [...new Set([...own, ...this.#hinted])].slice(0, amongAtOnce)
    for (const route of hinted) this.#hinted.delete(route)
    const candidates = hinted.length > 0 ? await findAmong(db.writer, owner, clock.now(), hinted) : []
    if (!isWalk) return candidates
    if (!this.#walkFrom) candidates.push(...(await findOrphaned(db, owner)))
    const walk = await walkQueues(db, owner, clock.now(), { from: this.#walkFrom, max: walkStep })
    this.#walkFrom = walk.next
    this.#walkedAtMs = performance.now()
    this.#short = 0
    return [...candidates, ...walk.candidates]
  }

  get #isTimeToWalk(): boolean {
    const goesOn = this.#walkFrom !== null || this.#short > this.#slots
    return performance.now() - this.#walkedAtMs >= (goesOn ? acquireIntervalMs : walkIntervalMs)
  }

  #holdings(): Holding[] {
    return [...this.#held.values()].map(({ organizationId, worker }) => ({
      organizationId,
      isOpening: worker.isOpening,
    }))
  }

  /** A measure of the slots that are taken: a queue that has opened has given one back. */
  get #slots(): number {
    return this.#holdings().reduce((sum, { isOpening }) => sum + (isOpening ? 2 : 1), 0)
  }

  #hold(nodeId: number, route: RouteRow, organizationId: string | null, leaseUntilMs: number): void {
    const { verbsFor, maxConnectionsOf, retryScheduleMs, clock, log } = this.#options
    const mayFinish = () =>
      this.#held.get(route.key) === held && performance.now() < held.leaseUntilMs - leaseMarginMs
    const verbs = verbsFor({ route: route.key, epoch: route.epoch }, mayFinish)
    const worker = new RouteWorker({
      route,
      maxConnections: maxConnectionsOf(route.key),
      idleTimeoutMs,
      retryScheduleMs,
      clock,
      log,
      verbs,
    })
    const held: Held<Job> = {
      ...{ organizationId, epoch: route.epoch, leaseUntilMs, worker },
      ended: Promise.resolve(),
    }
    // An own lease that had run out: what still goes on under its epoch is void.
    this.#held.get(route.key)?.worker.cut()
    this.#held.set(route.key, held)
    held.ended = this.#work(nodeId, route, held, verbs)
  }

  async #work(nodeId: number, route: RouteRow, held: Held<Job>, verbs: RouteVerbs<Job>): Promise<void> {
    const { db, clock, log } = this.#options
    try {
      const orphans = await reclaimOrphans(db.writer, route, clock.now())
      if (orphans > 0) log.info({ route: route.key, orphans }, 'took back what a lost owner had on the wire')
      await held.worker.run()
    } catch (error) {
      log.warn({ err: error, route: route.key }, 'a destination queue was interrupted')
    }
    // Let go of before its results are recorded, the route's next owner would send those messages again.
    await verbs.recorded()
    await releaseRoute(db.writer, nodeId, route).catch(() => {}) // the lease runs out by itself
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
      (await renewRoutes(this.#options.db.writer, nodeId, held, leaseMs)).map((route) => [route.key, route]),
    )
    for (const { key, epoch } of held) {
      const current = this.#held.get(key)
      if (current?.epoch !== epoch) continue
      const route = renewed.get(key)
      if (!route) current.worker.cut()
      else {
        current.leaseUntilMs = askedMs + leaseMs
        current.worker.apply(route)
      }
    }
    return false
  }
}

function partition<Item>(items: Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))]
}
