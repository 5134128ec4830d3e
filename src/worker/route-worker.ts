// Owns one destination queue: how many connections, when to try, when to wait. Nobody else sends to this route meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { RouteRow } from '../store/routes.ts'

/** A connection as the worker sees it. */
export interface Line {
  readonly usable: boolean
  quit(): Promise<void>
  destroy(): void
}

/** How one job went: `fault` is the connection's, so the route's; `decided`: for good, so that the line has been of use. */
export interface Carried {
  fault: string | null
  decided: boolean
}

/** What the worker is handed: the verbs of the flow, bound to this route's lease. */
export interface RouteVerbs<Job> {
  open(signal: AbortSignal): Promise<{ line: Line } | { fault: string } | { refused: true }>
  claim(wanted: number): Promise<Job[]>
  /** Sends one job and resolves once its result is on its way to being recorded. */
  carry(line: Line, job: Job): Promise<Carried>
  /** Jobs that were claimed and not tried. */
  giveBack(jobs: Job[]): void
  nextDue(): Promise<Date | null>
  noteFault(failures: number, notBefore: Date, text: string): Promise<void>
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

const maxFaultLength = 500
const gatherMs = 15
const longestRestMs = 1_000

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
  #jobs: Job[] = []
  #claiming: Promise<void> | null = null
  #lines = 0
  #working = 0
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
    const errors: unknown[] = []
    const add = () => {
      this.#lines++
      const line = this.#line(add).catch((error) => errors.push(error))
      ended.push(line.then(() => void this.#lines--))
    }
    add()
    for (let line = ended.shift(); line; line = ended.shift()) await line
    this.#options.verbs.giveBack(this.#jobs.splice(0))
    if (errors.length > 0) throw errors[0]
  }

  async #line(addLine: () => void): Promise<void> {
    const opened = await this.#options.verbs.open(this.#abort.signal)
    if ('refused' in opened) return
    if ('fault' in opened) return await this.#blocked(opened.fault)
    const { line } = opened
    // Another line has met a fault while this one was opening: it would only meet the same.
    if (this.#isBlocked) return void line.quit()
    this.#working++
    let fault: string | null
    try {
      fault = await this.#useLine(line, addLine)
    } finally {
      this.#working--
      if (line.usable && !this.#abort.signal.aborted) void line.quit()
      else line.destroy()
    }
    if (fault) await this.#blocked(fault)
  }

  /** Carries jobs until there are none; answers the fault that ended it before it had been of any use. */
  async #useLine(line: Line, addLine: () => void): Promise<string | null> {
    let used = false
    for (let job = await this.#next(); job; job = await this.#next()) {
      if (this.#jobs.length > 0 && this.#lines < this.#options.maxLines && this.#lines === this.#working)
        addLine()
      const { fault, decided } = await this.#options.verbs.carry(line, job)
      used ||= decided
      if (this.#failures > 0 && (used || !fault)) await this.#recovered()
      if (fault) return used ? null : fault
      if (!line.usable) return null
    }
    return null
  }

  async #next(): Promise<Job | null> {
    for (let lingered = false; ; lingered = true) {
      if (this.#stopping || this.#paused) return null
      const job = this.#jobs.shift()
      if (job) return job
      const seen = this.#work
      await (this.#claiming ??= this.#claim().finally(() => (this.#claiming = null)))
      if (this.#jobs.length > 0) continue
      if (lingered && this.#work === seen) return null
      await this.#rest(this.#options.lingerMs, seen)
    }
  }

  /**
   * Takes only what goes on the wire now: one job for each line, and one more to keep it busy meanwhile. After a claim
   * that came back short work gathers for a moment, for a claim costs as much as several deliveries.
   */
  async #claim(): Promise<void> {
    const waitMs = this.#gatherUntilMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    const wanted = this.#lines * 2 + 2
    const jobs = await this.#options.verbs.claim(wanted)
    if (jobs.length < wanted / 2) this.#gatherUntilMs = performance.now() + gatherMs
    this.#jobs.push(...jobs)
  }

  async #blocked(fault: string): Promise<void> {
    // Where other lines work, the peer only wants no more of them.
    if (this.#stopping || this.#working > 0 || this.#isBlocked) return
    const { clock, verbs, retryScheduleMs, log, route } = this.#options
    this.#failures++
    const waitMs = backoffMs(retryScheduleMs, this.#failures)
    this.#notBeforeMs = clock.nowMs() + waitMs
    log.info(
      { route: route.key, fault, failures: this.#failures, waitMs },
      'the way to a destination is blocked',
    )
    await verbs.noteFault(this.#failures, new Date(this.#notBeforeMs), fault.slice(0, maxFaultLength))
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
