// Owns one destination queue: how many connections, when to try, when to wait. Nobody else sends to this route meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { mayTake } from '../base/share.ts'
import type { RouteFault, RouteRow } from '../store/routes.ts'

/** A connection as the worker sees it. */
export interface Line {
  readonly usable: boolean
  quit(): Promise<void>
  destroy(): void
}

/**
 * How one job went: `fault` is the connection's, so the route's; `decided`: for good, so that the line has been of use.
 * What was not `tried`, as of who is held or what we could not write, says nothing of the way.
 */
export interface Carried {
  fault: RouteFault | null
  decided: boolean
  tried: boolean
}

/** What the worker is handed: the verbs of the flow, bound to this route's lease. */
export interface RouteVerbs<Job> {
  open(signal: AbortSignal): Promise<{ line: Line } | { fault: RouteFault } | { refused: true }>
  /** None of the organizations in `passedOver`. */
  claim(wanted: number, passedOver: string[]): Promise<Job[]>
  organizationOf(job: Job): string
  /**
   * Sends one job, claimed `waitedMs` ago, and resolves once its result is on its way to being recorded; what is held by
   * now is given back.
   */
  carry(line: Line, job: Job, waitedMs: number): Promise<Carried>
  /** Jobs that were claimed and not tried. */
  giveBack(jobs: Job[]): void
  nextDue(): Promise<Date | null>
  noteFault(failures: number, notBefore: Date, fault: RouteFault): Promise<void>
  clearFault(): Promise<void>
  /** Resolves when every result is recorded or given up; never rejects. Before it a lease must not be let go. */
  recorded(): Promise<void>
}

export interface RouteWorkerOptions<Job> {
  route: RouteRow
  verbs: RouteVerbs<Job>
  maxLines: number
  /** How long a line stays open without work. */
  lingerMs: number
  retryScheduleMs: number[]
  clock: Clock
  log: Log
}

/** A job that was claimed and has no line yet. */
interface Waiting<Job> {
  job: Job
  organizationId: string
  claimedMs: number
}

const gatherMs = 15
const longestRestMs = 1_000
/** Where every line is busy, or hangs, one looks this often whether there is work for another. */
const lookMs = 100
/** A peer that wants no more connections is not asked for another meanwhile. */
const crowdedMs = 1_000
/** For each line that stays free one organization may have three: a slow tenant leaves room for whoever comes. */
const lineRatio = 3

/**
 * Runs until nothing falls due for a while, the way is blocked, the queue is paused, the lease is lost, or it is
 * stopped; `run` then resolves. A queue that only waits has no worker: it must not take the place of one that could send.
 */
export class RouteWorker<Job> {
  readonly #options: RouteWorkerOptions<Job>
  readonly #abort = new AbortController()
  #paused: boolean
  #failures: number
  #notBeforeMs: number
  #stopping = false
  #jobs: Waiting<Job>[] = []
  #claiming: Promise<void> | null = null
  #lines = 0
  /** Lines that are open, and how many of them carry a job, by organization. */
  #working = 0
  #carrying = 0
  readonly #carried = new Map<string, number>()
  #hasCarried = false
  #crowdedUntilMs = 0
  #looked = 0
  #lookWaitMs = lookMs
  #lookAtMs = 0
  #rousers = new Set<() => void>()
  #work = 0
  #seen = 0
  #gatherUntilMs = 0

  constructor(options: RouteWorkerOptions<Job>) {
    this.#options = options
    const { paused, failures, notBefore } = options.route
    this.#paused = paused
    this.#failures = failures
    this.#notBeforeMs = notBefore?.getTime() ?? 0
  }

  /** It was woken after it last looked for work. */
  get isWoken(): boolean {
    return this.#work !== this.#seen
  }

  /** No message has gone out yet. */
  get isOpening(): boolean {
    return !this.#hasCarried
  }

  get #isBlocked(): boolean {
    return this.#notBeforeMs > this.#options.clock.nowMs()
  }

  /** There may be work. */
  wake(): void {
    this.#work++
    for (const rouse of [...this.#rousers]) rouse()
  }

  /** Takes over what operators have said, as read at each renewal of the lease. */
  heed({ paused }: RouteRow): void {
    if (paused === this.#paused) return
    this.#paused = paused
    this.wake()
  }

  /** No new work is taken; what is on the wire ends. */
  stop(): void {
    this.#stopping = true
    this.wake()
  }

  /** Everything ends at once: the lease is lost, or there is no time left. */
  cut(): void {
    this.stop()
    this.#abort.abort()
  }

  async run(): Promise<void> {
    const { clock, verbs } = this.#options
    for (;;) {
      this.#seen = this.#work
      if (this.#stopping || this.#paused || this.#isBlocked) return
      const dueAt = await verbs.nextDue()
      const waitMs = dueAt ? dueAt.getTime() - clock.nowMs() : Number.POSITIVE_INFINITY
      if (waitMs > longestRestMs) return
      if (waitMs > 0) await this.#rest(waitMs, this.#seen)
      else await this.#drive()
    }
  }

  /** Sends until nothing is due any more: one line first, more while there is more than the lines can take. */
  async #drive(): Promise<void> {
    const ended: Promise<void>[] = []
    let failure: unknown = null
    const fail = (error: unknown) => void (failure ??= error)
    const add = () => {
      this.#lines++
      const line = this.#line(grow).catch(fail)
      ended.push(line.then(() => void this.#lines--))
    }
    const grow = () => void (this.#mayGrow && this.#isReady && add())
    let looking: Promise<void> | null = null
    const look = () =>
      this.#look(grow)
        .catch(fail)
        .finally(() => (looking = null))
    const looks = setInterval(() => (looking ??= look()), lookMs)
    add()
    do {
      for (let line = ended.shift(); line; line = ended.shift()) await line
      // It may just be claiming, and add another.
      await looking
    } while (ended.length > 0)
    clearInterval(looks)
    this.#giveBackAll()
    if (failure) throw failure
  }

  async #line(grow: () => void): Promise<void> {
    const opened = await this.#options.verbs.open(this.#abort.signal)
    if ('refused' in opened) return
    if ('fault' in opened) return await this.#blocked(opened.fault)
    const { line } = opened
    // Another line has met a fault while this one was opening: it would only meet the same.
    if (this.#isBlocked) return void line.quit()
    this.#working++
    let fault: RouteFault | null
    try {
      fault = await this.#useLine(line, grow)
    } finally {
      this.#working--
      if (line.usable && !this.#abort.signal.aborted) void line.quit()
      else line.destroy()
    }
    if (fault) await this.#blocked(fault)
  }

  /** Carries jobs until there are none; answers the fault that ended it before it had been of any use. */
  async #useLine(line: Line, grow: () => void): Promise<RouteFault | null> {
    let used = false
    for (let next = await this.#next(); next; next = await this.#next()) {
      grow()
      const { fault, decided, tried } = await this.#carry(line, next)
      used ||= decided
      const isFree = tried && !fault
      this.#hasCarried ||= isFree
      if (this.#failures > 0 && (used || isFree)) await this.#recovered()
      if (fault) return used ? null : fault
      if (!line.usable) return null
    }
    return null
  }

  async #carry(line: Line, { job, organizationId, claimedMs }: Waiting<Job>): Promise<Carried> {
    try {
      return await this.#options.verbs.carry(line, job, performance.now() - claimedMs)
    } finally {
      this.#carrying--
      const left = this.#linesOf(organizationId) - 1
      if (left > 0) this.#carried.set(organizationId, left)
      else this.#carried.delete(organizationId)
    }
  }

  async #next(): Promise<Waiting<Job> | null> {
    for (let lingered = false; ; lingered = true) {
      if (this.#stopping || this.#paused) return null
      const next = this.#take()
      if (next) return next
      const seen = this.#work
      await this.#claimOnce()
      if (this.#isReady) continue
      if (lingered && this.#work === seen) return null
      await this.#rest(this.#options.lingerMs, seen)
    }
  }

  /** The next job: of those whose organization may have another line, one of an organization with the fewest. */
  #take(): Waiting<Job> | null {
    let next: Waiting<Job> | null = null
    for (const waiting of this.#jobs) {
      const fewer = !next || this.#linesOf(waiting.organizationId) < this.#linesOf(next.organizationId)
      if (fewer && this.#mayCarry(waiting.organizationId)) next = waiting
    }
    if (!next) return null
    this.#jobs.splice(this.#jobs.indexOf(next), 1)
    this.#carrying++
    this.#carried.set(next.organizationId, this.#linesOf(next.organizationId) + 1)
    return next
  }

  #linesOf(organizationId: string): number {
    return this.#carried.get(organizationId) ?? 0
  }

  #mayCarry(organizationId: string): boolean {
    return mayTake(this.#linesOf(organizationId), this.#carrying, this.#options.maxLines, lineRatio)
  }

  get #isReady(): boolean {
    return this.#jobs.some(({ organizationId }) => this.#mayCarry(organizationId))
  }

  /** Every line carries a job, none is opening or about to ask for one, and there may be more. */
  get #mayGrow(): boolean {
    const { maxLines } = this.#options
    return (
      this.#lines === this.#carrying && this.#lines < maxLines && performance.now() >= this.#crowdedUntilMs
    )
  }

  /**
   * Looks for work where no line asks for it, since all of them are busy, or hang: when woken, and else ever more rarely
   * while there is none.
   */
  async #look(grow: () => void): Promise<void> {
    if (this.#stopping || this.#paused || this.#isBlocked || !this.#mayGrow) return
    if (!this.#isReady && (this.#work !== this.#looked || performance.now() >= this.#lookAtMs)) {
      this.#looked = this.#work
      await this.#claimOnce()
      this.#lookWaitMs = this.#isReady ? lookMs : Math.min(2 * this.#lookWaitMs, longestRestMs)
      this.#lookAtMs = performance.now() + this.#lookWaitMs
    }
    grow()
  }

  async #claimOnce(): Promise<void> {
    await (this.#claiming ??= this.#claim().finally(() => (this.#claiming = null)))
  }

  /**
   * Takes only what goes on the wire now: one job for each line, and one more to keep it busy meanwhile. After a claim
   * that came back short work gathers for a moment, for a claim costs as much as several deliveries. Organizations that
   * have jobs here, or may have no more lines, are passed over. Lines that rest are roused for what came.
   */
  async #claim(): Promise<void> {
    const waitMs = this.#gatherUntilMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    const wanted = this.#lines * 2 + 2
    if (this.#jobs.length > 2 * this.#options.maxLines) this.#giveBackAll()
    const full = [...this.#carried.keys()].filter((id) => !this.#mayCarry(id))
    const passedOver = new Set([...full, ...this.#jobs.map(({ organizationId }) => organizationId)])
    const { claim, organizationOf } = this.#options.verbs
    const jobs = await claim(wanted, [...passedOver])
    if (jobs.length < wanted / 2) this.#gatherUntilMs = performance.now() + gatherMs
    const claimedMs = performance.now()
    this.#jobs.push(...jobs.map((job) => ({ job, organizationId: organizationOf(job), claimedMs })))
    for (const rouse of [...this.#rousers].slice(0, jobs.length)) rouse()
  }

  #giveBackAll(): void {
    this.#options.verbs.giveBack(this.#jobs.splice(0).map(({ job }) => job))
  }

  async #blocked(fault: RouteFault): Promise<void> {
    // Where other lines work, the peer only wants no more of them.
    if (this.#working > 0) this.#crowdedUntilMs = performance.now() + crowdedMs
    if (this.#stopping || this.#working > 0 || this.#isBlocked) return
    const { clock, verbs, retryScheduleMs, log, route } = this.#options
    this.#failures++
    const waitMs = backoffMs(retryScheduleMs, this.#failures)
    this.#notBeforeMs = clock.nowMs() + waitMs
    log.info(
      { route: route.key, fault: fault.text, failures: this.#failures, waitMs },
      'the way to a destination is blocked',
    )
    await verbs.noteFault(this.#failures, new Date(this.#notBeforeMs), fault)
  }

  async #recovered(): Promise<void> {
    this.#failures = 0
    this.#notBeforeMs = 0
    await this.#options.verbs.clearFault()
  }

  /** Waits for a wake-up; one that came since `seen` was read counts. */
  async #rest(waitMs: number, seen: number): Promise<void> {
    if (this.#work !== seen || this.#stopping) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, waitMs)
      const rousers = this.#rousers
      function done() {
        clearTimeout(timer)
        rousers.delete(done)
        resolve()
      }
      rousers.add(done)
    })
  }
}
