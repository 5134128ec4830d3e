// Which destination queues this node acquires, and the worker that each queue gets.
import {
  type Candidate,
  findAmong,
  findOrphaned,
  type RouteRow,
  routeLeases,
  type WalkCursor,
  walkQueues,
} from '../store/sending/routes.ts'
import type { LeaseSource, LeaseTerms, Search, Workers } from './lease-holder.ts'
import { chooseRoutes, type HeldQueue } from './route-choice.ts'
import { type RouteVerbs, RouteWorker } from './route-worker.ts'

export interface DueRoutesOptions<Job> {
  /** Makes the operations on one route, bound to one lease. The route was acquired for mail of `organizationId`. */
  verbsFor(route: RouteRow, mayFinish: () => boolean, organizationId: string | null): RouteVerbs<Job>
  /** The processes that divide the queues of a service. */
  workers?: number
  /** Routes that need no slot, such as `@local`, because they do not depend on strangers' servers. */
  ownRoutes: readonly string[]
  /** Whether the route must not be acquired, even if mail waits in it. */
  isHeldBack(route: string): boolean
  /** How long a route stays blocked after the first, second, … failure in a row, in milliseconds. */
  retryScheduleOf(route: string): readonly number[]
}

/** A walk through all queues goes in steps. Between two steps, hinted queues are searched for. */
const walkStep = 200
const amongAtOnce = 200
const acquireAtOnce = 50

export class DueRoutes<Job> implements LeaseSource<RouteRow, RouteWorker<Job>> {
  readonly leases = routeLeases
  readonly #options: DueRoutesOptions<Job>
  #walkFrom: WalkCursor | null = null
  /**
   * For each queue in the result of the last `find`: the organization whose mail it is acquired for. Our own have none.
   */
  #purposes = new Map<string, string>()
  /**
   * How many slots were taken when a queue was left out. Once fewer are taken, all queues are walked. 0: none left out.
   */
  #lackedSlotsAt = 0

  constructor(options: DueRoutesOptions<Job>) {
    this.#options = options
  }

  /** Whether a walk has further steps to go, or a slot is free again for a queue that was left out. */
  hasMore(held: Workers<RouteWorker<Job>>): boolean {
    return this.#walkFrom !== null || this.#lackedSlotsAt > slotsOf(held)
  }

  /** Returns the due queues to acquire: our own, and as many others as get a slot. */
  async find(search: Search<RouteWorker<Job>>): Promise<string[]> {
    const { ownRoutes, isHeldBack, workers } = this.#options
    const found = await this.#search(search)
    const candidates = found.filter(({ key }) => !isHeldBack(key))
    const own = ownRoutes.filter((route) => candidates.some(({ key }) => key === route))
    const others = candidates.filter(({ key }) => !ownRoutes.includes(key))
    const heldQueues = [...search.held.values()].map(({ worker }): HeldQueue => worker)
    const chosen = chooseRoutes(others, heldQueues, acquireAtOnce, workers)
    this.#purposes = new Map(chosen.map(({ key, organizationId }) => [key, organizationId]))
    const keys = [...own, ...this.#purposes.keys()]
    if (others.some(({ key }) => !this.#purposes.has(key))) {
      const taken = slotsOf(search.held) + slotsOfOpening * keys.length
      // If the choice ended at `acquireAtOnce` and not for lack of slots, the next walk begins at once.
      const lackedAt = chosen.length < acquireAtOnce ? taken : Number.POSITIVE_INFINITY
      this.#lackedSlotsAt = Math.max(this.#lackedSlotsAt, lackedAt)
    }
    return keys
  }

  /** Looks up hinted queues immediately. Walks all queues once a second, or when a left-out queue may get a slot. */
  async #search({ db, asker, at, hinted, isPoll, held }: Search<RouteWorker<Job>>): Promise<Candidate[]> {
    const { ownRoutes } = this.#options
    const isWalk = isPoll || this.hasMore(held)
    const own = ownRoutes.filter((route) => hinted.has(route) || (isPoll && !held.has(route)))
    const among = [...new Set([...own, ...hinted])].slice(0, amongAtOnce)
    for (const route of among) hinted.delete(route)
    const candidates = among.length > 0 ? await findAmong(db.writer, asker, at, among) : []
    if (isPoll) candidates.push(...(await findOrphaned(db, asker)))
    if (!isWalk) return candidates
    if (!this.#walkFrom) this.#lackedSlotsAt = 0
    const walk = await walkQueues(db, asker, at, { from: this.#walkFrom, max: walkStep })
    this.#walkFrom = walk.next
    return [...candidates, ...walk.candidates]
  }

  createWorker(route: RouteRow, { mayFinish, onRoom, ...rest }: LeaseTerms): RouteWorker<Job> {
    const { verbsFor, retryScheduleOf } = this.#options
    const organizationId = this.#purposes.get(route.key) ?? null
    return new RouteWorker({
      route,
      organizationId,
      verbs: verbsFor(route, mayFinish, organizationId),
      onOpened: onRoom,
      retryScheduleMs: retryScheduleOf(route.key),
      ...rest,
    })
  }
}

const slotsOfOpening = 2

/** Counts the taken slots. A queue counts two until its first message has gone out, and one from then on. */
function slotsOf(held: Workers<Pick<HeldQueue, 'isOpening'>>): number {
  return [...held.values()].reduce((sum, { worker }) => sum + (worker.isOpening ? slotsOfOpening : 1), 0)
}
