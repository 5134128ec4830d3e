// Sends the mail of one destination queue: connections, attempts and pauses. No other worker sends to its route meanwhile.
import { backoffMs } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { Signal } from '../base/signal.ts'
import type { RouteFault, RouteRow } from '../store/sending/routes.ts'
import { type ClaimedJob, ClaimedJobs, type ClaimVerbs } from './claimed-jobs.ts'
import type { LeaseWorker } from './lease-holder.ts'

/** A connection, as the worker sees it. */
export interface OutboundConnection {
  readonly isUsable: boolean
  quit(): Promise<void>
  destroy(): void
}

/**
 * The result of one job. `fault`: the fault of the connection, and so of the route. `isDecided`: a delivery was delivered
 * or bounced, so the connection was of use. A job that was not tried proves nothing about the route: its organization's
 * mail is held, or a fault of ours kept us from writing its message.
 */
export interface Carried {
  fault: RouteFault | null
  isDecided: boolean
  wasTried: boolean
}

/** The operations on one route, bound to its lease. */
export interface RouteVerbs<Job> extends ClaimVerbs<Job> {
  /** Releases deliveries that a lost owner had on the wire, so that they are retried. */
  reclaim(): Promise<void>
  open(
    signal: AbortSignal,
  ): Promise<
    { connection: OutboundConnection } | { fault: RouteFault } | { refused: true } | { heldUntil: Date }
  >
  /** How many connections the queue may have now, 1 at least. */
  readonly maxConnections: number
  /** Whether a further connection may open at once. */
  readonly hasRoom: boolean
  /**
   * Asks for the job's messages, and may wait for them. `over`: the connection must close, and another may open. Otherwise
   * the time until which the queue must wait.
   */
  admit(
    connection: OutboundConnection,
    job: Job,
    signal: AbortSignal,
  ): Promise<'go' | 'over' | { heldUntilMs: number }>
  /** Closes the connection, without a farewell if the signal is aborted. */
  close(connection: OutboundConnection, signal: AbortSignal): Promise<void>
  /**
   * Sends one job, claimed `waitedMs` ago, and resolves once its result is being recorded. Gives the job back if its
   * organization's mail is held by now.
   */
  carry(connection: OutboundConnection, job: Job, waitedMs: number): Promise<Carried>
  nextDue(): Promise<Date | null>
  noteFault(failures: number, notBefore: Date, fault: RouteFault): Promise<void>
  clearFault(): Promise<void>
  /** Notes that the queue waits for the limits of its destination. That is no fault. */
  noteHold(until: Date): Promise<void>
  /** Resolves when every result is recorded or given up; never rejects. */
  recorded(): Promise<void>
}

export interface RouteWorkerOptions<Job> {
  route: RouteRow
  /** The organization whose mail caused us to acquire the route; null for our own routes. */
  organizationId: string | null
  verbs: RouteVerbs<Job>
  /** How long a connection stays open without work. */
  idleMs: number
  /** Called once the first message has gone out. */
  onOpened(): void
  retryScheduleMs: readonly number[]
  clock: Clock
  log: Log
}

const maxRestMs = 1_000
/**
 * While every connection is busy or hangs, the worker polls this often for work that a further connection could carry.
 * Measured with 100 mails that take 30 ms each, one every 35 ms: the worker opens 7 connections, and 20 with a poll at
 * each wake-up. If a connection hangs, other work waits up to 0.05 s, and 0.95 s with a poll every second.
 */
const pollMs = 100
/** After a further connection could not open, no other is tried for this long. */
const growthPauseMs = 1_000
/** A busy connection is replaced at this age, so that a changed TLS policy or MX record soon counts for all mail. */
const maxAgeMs = 300_000

/**
 * Serves one destination queue on the node that owns it, under one lease. First the worker releases deliveries that a
 * lost owner had on the wire. Then it goes through these states:
 *
 * - *resting*: a delivery falls due within a second. Lasts until then, or until a wake-up.
 * - *driving*: a delivery is due. One connection opens. Whenever every connection carries a job and another job is ready,
 *   a further connection opens, if the limits of the destination allow it. While every connection is busy or hangs, the worker polls for work
 *   for a further one. When the last connection has closed, jobs that were claimed and not sent are given back.
 * - *over*: nothing falls due within a second, the route is blocked or held, the queue is paused, or the worker was stopped.
 *   `run` resolves once the results are recorded: if the lease were released before, the next owner would send those
 *   messages again. A queue that only waits has no worker, because it must not take the slot of a queue that could send.
 *
 * A connection is *opening*, then *carrying* one job after another. Each claim is for all connections together. A
 * connection that finds no job is *idle* for `idleMs`, or until woken, and closes if a second claim finds none. A connection
 * older than five minutes closes after its job.
 *
 * If a connection has a fault before it was of any use, and no other is open, the route is blocked: it backs off, and
 * driving ends. If others are open, the peer merely limits connections, and the limits of the destination shrink. A job
 * that was sent, or got a final result, clears the back-off.
 *
 * Before each job the worker asks for its messages (`admit`). A connection that must close keeps its job for the others.
 * If the destination may get nothing for a while, the route is *held*: it is blocked until then, without a failure.
 *
 * New work (`LeaseHolder.wake`), changes by operators (`apply`) and `stop` wake all waiting connections. A claim wakes as
 * many idle connections as it got jobs. A crash leaves claimed jobs under an old epoch. The next owner releases them, and
 * messages that were on the wire may arrive twice.
 */
export class RouteWorker<Job> implements LeaseWorker<RouteRow> {
  readonly #options: RouteWorkerOptions<Job>
  readonly #abort = new AbortController()
  readonly #stop = new AbortController()
  /** Woken when there may be work. */
  readonly #signal = new Signal()
  readonly #jobs: ClaimedJobs<Job>
  /** The route as this worker knows it. Operators pause it. The worker itself backs it off. */
  #route: RouteRow
  #claiming: Promise<void> | null = null
  #claimedMs = 0
  /** How many connections are opening or open, and how many are open. */
  #connections = 0
  #open = 0
  #growAtMs = 0
  #hasCarried = false

  constructor(options: RouteWorkerOptions<Job>) {
    this.#options = options
    this.#route = options.route
    this.#jobs = new ClaimedJobs(options.verbs, () => options.verbs.maxConnections)
  }

  get isWoken(): boolean {
    return this.#signal.isWoken
  }

  get organizationId(): string | null {
    return this.#options.organizationId
  }

  /** Whether no message has gone out yet. */
  get isOpening(): boolean {
    return !this.#hasCarried
  }

  get #isBlocked(): boolean {
    const { notBefore } = this.#route
    return notBefore !== null && notBefore.getTime() > this.#options.clock.nowMs()
  }

  wake(): void {
    this.#signal.wake()
  }

  apply({ paused }: RouteRow): void {
    if (paused === this.#route.paused) return
    this.#route = { ...this.#route, paused }
    this.wake()
  }

  stop(): void {
    this.#stop.abort()
  }

  cut(): void {
    this.stop()
    this.#abort.abort()
  }

  async run(): Promise<void> {
    const { verbs } = this.#options
    try {
      await verbs.reclaim()
      await this.#work()
    } finally {
      await verbs.recorded()
    }
  }

  async #work(): Promise<void> {
    const { clock, verbs } = this.#options
    const stop = this.#stop.signal
    for (;;) {
      this.#signal.clear()
      if (stop.aborted || this.#route.paused || this.#isBlocked) return
      const dueAt = await verbs.nextDue()
      const waitMs = dueAt ? dueAt.getTime() - clock.nowMs() : Number.POSITIVE_INFINITY
      if (waitMs > maxRestMs) return
      if (waitMs > 0) await this.#signal.wait(waitMs, stop)
      else await this.#drive()
    }
  }

  /**
   * Sends until nothing is due, over one connection at first, and over more while there are more jobs than connections.
   */
  async #drive(): Promise<void> {
    const ended: Promise<void>[] = []
    let failure: unknown = null
    const fail = (error: unknown) => void (failure ??= error)
    const add = () => {
      this.#connections++
      const connection = this.#connect(grow).catch(fail)
      ended.push(connection.then(() => void this.#connections--))
    }
    const grow = () => void (this.#mayGrow && this.#jobs.isReady && add())
    let polling: Promise<void> | null = null
    const polls = setInterval(() => {
      polling ??= this.#claimForMore(grow)
        .catch(fail)
        .finally(() => (polling = null))
    }, pollMs)
    add()
    do {
      for (let connection = ended.shift(); connection; connection = ended.shift()) await connection
      // A poll that is under way may still add a connection.
      await polling
    } while (ended.length > 0)
    clearInterval(polls)
    this.#jobs.giveBackAll()
    if (failure) throw failure
  }

  /** Claims while no connection does, because each is busy or hangs: after a wake-up, and otherwise once a second. */
  async #claimForMore(grow: () => void): Promise<void> {
    if (this.#stop.signal.aborted || this.#route.paused || this.#isBlocked || !this.#mayGrow) return
    const isDue = this.#signal.isWoken || performance.now() - this.#claimedMs >= maxRestMs
    if (isDue && !this.#jobs.isReady) await this.#claimOnce()
    grow()
  }

  /** Whether a further connection may open: each carries a job, none is opening or claiming, and the limit allows it. */
  get #mayGrow(): boolean {
    const { maxConnections, hasRoom } = this.#options.verbs
    const mayTry = performance.now() >= this.#growAtMs && this.#connections < maxConnections
    return this.#connections === this.#jobs.carrying && mayTry && hasRoom
  }

  async #connect(grow: () => void): Promise<void> {
    const { verbs } = this.#options
    const opened = await verbs.open(this.#abort.signal)
    if ('refused' in opened) return
    if (!('connection' in opened) && this.#open > 0) this.#growAtMs = performance.now() + growthPauseMs
    if ('heldUntil' in opened) return this.#open > 0 ? undefined : await this.#held(opened.heldUntil)
    if ('fault' in opened) return await this.#blocked(opened.fault)
    const { connection } = opened
    // A fault of another connection has blocked the route while this one was opening. It would meet the same fault.
    if (this.#isBlocked) return void verbs.close(connection, this.#abort.signal)
    this.#open++
    let fault: RouteFault | null
    try {
      fault = await this.#use(connection, grow)
    } finally {
      this.#open--
      void verbs.close(connection, this.#abort.signal)
    }
    if (fault) await this.#blocked(fault)
  }

  /** Sends jobs until there are none. Returns the fault that ended the connection, if it came before any final result. */
  async #use(connection: OutboundConnection, grow: () => void): Promise<RouteFault | null> {
    const { clock } = this.#options
    const openedMs = clock.monotonicMs()
    let used = false
    for (let next = await this.#next(); next; next = await this.#next()) {
      grow()
      if (!(await this.#isAdmitted(connection, next))) return null
      const { fault, isDecided, wasTried } = await this.#carry(connection, next)
      used ||= isDecided
      const isFree = wasTried && !fault
      if (isFree) this.#opened()
      if (this.#route.failures > 0 && (used || isFree)) await this.#recovered()
      if (fault) return used ? null : fault
      if (!connection.isUsable || clock.monotonicMs() - openedMs > maxAgeMs) return null
    }
    return null
  }

  /** Whether the job may be sent now. If not, this connection must close. */
  async #isAdmitted(connection: OutboundConnection, claimed: ClaimedJob<Job>): Promise<boolean> {
    let isAdmitted = false
    try {
      const admission = await this.#options.verbs.admit(connection, claimed.job, this.#stop.signal)
      isAdmitted = admission === 'go'
      if (typeof admission === 'object') await this.#held(new Date(admission.heldUntilMs))
    } finally {
      // Once only: a job that waits twice would be sent twice.
      if (!isAdmitted) this.#jobs.putBack(claimed)
    }
    // An idle connection may take the job.
    if (!isAdmitted) this.#signal.wakeSome(1)
    return isAdmitted
  }

  async #carry(connection: OutboundConnection, claimed: ClaimedJob<Job>): Promise<Carried> {
    try {
      const waitedMs = performance.now() - claimed.claimedMs
      return await this.#options.verbs.carry(connection, claimed.job, waitedMs)
    } finally {
      this.#jobs.release(claimed)
    }
  }

  async #next(): Promise<ClaimedJob<Job> | null> {
    for (let hasWaited = false; ; hasWaited = true) {
      if (this.#stop.signal.aborted || this.#route.paused) return null
      const next = this.#jobs.take()
      if (next) return next
      // A claim that was under way when this connection was woken may have begun before the work was committed.
      if (hasWaited && this.#claiming) await this.#claiming
      if (!this.#jobs.isReady) await this.#claimOnce()
      if (this.#jobs.isReady) continue
      if (hasWaited && !this.#signal.isWoken) return null
      await this.#signal.wait(this.#options.idleMs, this.#stop.signal)
    }
  }

  async #claimOnce(): Promise<void> {
    await (this.#claiming ??= this.#claim().finally(() => (this.#claiming = null)))
  }

  /** Claims only jobs that can be sent soon: two per connection, to keep it busy, and two for a further connection. */
  async #claim(): Promise<void> {
    await this.#jobs.debounced()
    this.#signal.clear()
    this.#claimedMs = performance.now()
    this.#signal.wakeSome(await this.#jobs.claim(this.#connections * 2 + 2))
  }

  async #blocked(fault: RouteFault): Promise<void> {
    // If other connections are open, the peer merely limits connections.
    if (this.#stop.signal.aborted || this.#open > 0 || this.#isBlocked) return
    const { clock, verbs, retryScheduleMs, log } = this.#options
    const { key } = this.#route
    // While hosts remain that were not asked, the next attempt comes soon.
    const failures = Math.max(this.#route.failures + (fault.hasUnasked ? 0 : 1), 1)
    const waitMs = backoffMs(retryScheduleMs, fault.hasUnasked ? 1 : failures)
    const notBefore = new Date(clock.nowMs() + waitMs)
    this.#route = { ...this.#route, failures, notBefore }
    log.info({ route: key, fault: fault.text, failures, waitMs }, 'destination blocked')
    await verbs.noteFault(failures, notBefore, fault)
  }

  /** The limits of the destination let the queue wait. Its other connections may go on. */
  async #held(until: Date): Promise<void> {
    if (this.#stop.signal.aborted || this.#isBlocked) return
    this.#route = { ...this.#route, notBefore: until }
    await this.#options.verbs.noteHold(until)
  }

  #opened(): void {
    if (this.#hasCarried) return
    this.#hasCarried = true
    this.#options.onOpened()
  }

  async #recovered(): Promise<void> {
    this.#route = { ...this.#route, failures: 0, notBefore: null }
    await this.#options.verbs.clearFault()
  }
}
