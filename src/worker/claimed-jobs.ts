// The jobs that a queue's worker has claimed: which job is next, and how organizations share the connections.
import { setTimeout as sleep } from 'node:timers/promises'
import { mayTake } from '../base/share.ts'
import { debounceMs } from './loop.ts'

/** Operations that claim jobs from the queue, and give them back. */
export interface ClaimVerbs<Job> {
  /** Claims up to `wanted` jobs, but none that belong to the organizations in `passedOver`. */
  claim(wanted: number, passedOver: string[]): Promise<Job[]>
  organizationOf(job: Job): string
  /** Releases the claims of jobs that were not tried. */
  giveBack(jobs: Job[]): void
}

export interface ClaimedJob<Job> {
  job: Job
  organizationId: string
  claimedMs: number
}

/** One organization may use up to three times the connections that stay free, so a slow tenant leaves room for others. */
const connectionRatio = 3

export class ClaimedJobs<Job> {
  readonly #verbs: ClaimVerbs<Job>
  readonly #maxConnections: () => number
  /** Jobs that have no connection yet. */
  #waiting: ClaimedJob<Job>[] = []
  /** How many connections carry a job, in all and by organization. */
  #carrying = 0
  readonly #carryingFor = new Map<string, number>()
  #claimAtMs = 0

  constructor(verbs: ClaimVerbs<Job>, maxConnections: () => number) {
    this.#verbs = verbs
    this.#maxConnections = maxConnections
  }

  /** How many connections carry a job. */
  get carrying(): number {
    return this.#carrying
  }

  /** Whether there is a job to take. */
  get isReady(): boolean {
    return this.#waiting.some(({ organizationId }) => this.#mayCarry(organizationId))
  }

  /** Waits briefly if the last claim got fewer than half the jobs that it wanted. */
  async debounced(): Promise<void> {
    const waitMs = this.#claimAtMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
  }

  /**
   * Claims up to `wanted` jobs, and returns how many came. Passes over organizations that have waiting jobs here, or may
   * have no further connection.
   */
  async claim(wanted: number): Promise<number> {
    if (this.#waiting.length > 2 * this.#maxConnections()) this.giveBackAll()
    const full = [...this.#carryingFor.keys()].filter((id) => !this.#mayCarry(id))
    const passedOver = new Set([...full, ...this.#waiting.map(({ organizationId }) => organizationId)])
    const jobs = await this.#verbs.claim(wanted, [...passedOver])
    if (jobs.length < wanted / 2) this.#claimAtMs = performance.now() + debounceMs
    const claimedMs = performance.now()
    const organizationOf = (job: Job) => this.#verbs.organizationOf(job)
    this.#waiting.push(...jobs.map((job) => ({ job, organizationId: organizationOf(job), claimedMs })))
    return jobs.length
  }

  /**
   * Takes a connection for the next job, and returns that job; null if there is none. Among organizations that may have
   * another connection, the one with the fewest is next.
   */
  take(): ClaimedJob<Job> | null {
    let next: ClaimedJob<Job> | null = null
    for (const waiting of this.#waiting) {
      const isFewer = !next || this.#countOf(waiting.organizationId) < this.#countOf(next.organizationId)
      if (isFewer && this.#mayCarry(waiting.organizationId)) next = waiting
    }
    if (!next) return null
    this.#waiting.splice(this.#waiting.indexOf(next), 1)
    this.#carrying++
    this.#carryingFor.set(next.organizationId, this.#countOf(next.organizationId) + 1)
    return next
  }

  /** Frees the connection of a job that was taken. */
  release({ organizationId }: ClaimedJob<Job>): void {
    this.#carrying--
    const left = this.#countOf(organizationId) - 1
    if (left > 0) this.#carryingFor.set(organizationId, left)
    else this.#carryingFor.delete(organizationId)
  }

  /** Keeps a job that was taken for another connection. */
  putBack(claimed: ClaimedJob<Job>): void {
    this.release(claimed)
    this.#waiting.unshift(claimed)
  }

  giveBackAll(): void {
    this.#verbs.giveBack(this.#waiting.splice(0).map(({ job }) => job))
  }

  #countOf(organizationId: string): number {
    return this.#carryingFor.get(organizationId) ?? 0
  }

  #mayCarry(organizationId: string): boolean {
    return mayTake(this.#countOf(organizationId), this.#carrying, this.#maxConnections(), connectionRatio)
  }
}
