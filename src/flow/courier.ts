// The delivery verbs for one destination queue, bound to its lease; results are recorded in groups.
import { setTimeout as sleep } from 'node:timers/promises'
import { Batch } from '../base/batch.ts'
import type { Log } from '../base/log.ts'
import { classOf, meters } from '../base/meters.ts'
import { traced } from '../base/trace.ts'
import type { SmtpConnection } from '../smtp/client.ts'
import { commitRows } from '../store/commit.ts'
import { DbFault } from '../store/db.ts'
import { type DeliveryResult, recordResults } from '../store/deliveries.ts'
import { backOffRoute, clearBackOff, nextDue } from '../store/routes.ts'
import { claimJobs, type DeliveryDeps, type DeliveryJob, deliver, untried, unwritable } from './deliver.ts'
import { failRoute } from './end-deliveries.ts'
import { type NextHopDeps, openRoute } from './next-hop.ts'
import { queueIdOf } from './states.ts'

export interface CourierDeps extends DeliveryDeps {
  log: Log
  nextHop: NextHopDeps
  /** Called when results, which customers are told of, have been recorded. */
  wake(): void
}

/** A result is worth recording for as long as this: what is forgotten is sent again. */
const recordForMs = 120_000
/** The line goes on meanwhile. Measured: 89 us of PostgreSQL's CPU a result in batches of 30, 142 in batches of 8. */
const gatherMs = 25

/** Carries mail for the routes that this node owns. */
export class Courier {
  readonly #deps: CourierDeps
  readonly #results: Batch<DeliveryResult, boolean | DbFault>

  constructor(deps: CourierDeps) {
    this.#deps = deps
    this.#results = new Batch({
      name: 'results',
      gatherMs,
      flush: (results) => this.#commit(results),
    })
  }

  verbsFor(lease: { route: string; epoch: number }, mayFinish: () => boolean) {
    const { db, clock, nextHop } = this.#deps
    const route = { key: lease.route, epoch: lease.epoch }
    const recording = new Set<Promise<void>>()
    const record = (results: DeliveryResult[]) => {
      for (const result of results) {
        const recorded = this.#record(result).finally(() => recording.delete(recorded))
        recording.add(recorded)
      }
    }
    return {
      open: (signal: AbortSignal) => this.#open(nextHop, lease.route, signal),
      claim: (wanted: number) => claimJobs(this.#deps, lease, wanted, record),
      carry: (line: SmtpConnection, job: DeliveryJob) => this.#carry(line, job, mayFinish, record),
      giveBack: (jobs: DeliveryJob[]) => record(jobs.flatMap(untried)),
      nextDue: () => nextDue(db, lease.route, clock.now()),
      noteFault: (failures: number, notBefore: Date, text: string) =>
        backOffRoute(db, route, { failures, notBefore, text }, clock.now()),
      clearFault: () => clearBackOff(db, route),
      recorded: async () => {
        while (recording.size > 0) await Promise.all(recording)
      },
    }
  }

  async #open(nextHop: NextHopDeps, route: string, signal: AbortSignal) {
    const opened = await openRoute(nextHop, route, signal)
    if ('connection' in opened) return { line: opened.connection }
    if ('fault' in opened) return { fault: opened.fault }
    await failRoute(this.#deps, route, opened.refusal)
    return { refused: true as const }
  }

  async #carry(
    line: SmtpConnection,
    job: DeliveryJob,
    mayFinish: () => boolean,
    record: (results: DeliveryResult[]) => void,
  ) {
    try {
      const describe = () => ({
        ...{ 'posthorn.submission': job.content.submissionId, 'posthorn.route': job.route },
        ...{ 'posthorn.recipients': job.deliveries.length, 'server.address': line.remote.host },
      })
      const { results, fault } = await traced('deliver', describe, () =>
        deliver(this.#deps, line, job, mayFinish),
      )
      this.#count(job, results)
      record(results)
      return { fault, decided: results.some(({ status }) => status === 'delivered' || status === 'bounced') }
    } catch (error) {
      // Nothing has been said of the message to the peer yet. That the database went away is no attempt of it.
      const isLost = error instanceof DbFault && error.kind === 'lost'
      const { submissionId: submission } = job.content
      this.#deps.log[isLost ? 'warn' : 'error']({ err: error, submission }, 'a message could not be written')
      record(isLost ? untried(job) : unwritable(this.#deps, job))
      return { fault: null, decided: false }
    }
  }

  async #commit(results: DeliveryResult[]): Promise<(boolean | DbFault)[]> {
    const { db, clock, wake } = this.#deps
    const outcomes = await commitRows(results, (rows) => recordResults(db, rows, clock.now()))
    wake()
    return outcomes
  }

  #count({ route, content }: DeliveryJob, results: DeliveryResult[]): void {
    const tookMs = this.#deps.clock.nowMs() - content.createdAt.getTime()
    for (const { status } of results) {
      meters.attempts.inc({ class: classOf(route), outcome: status ?? 'untried' })
      if (status === 'delivered') meters.deliverySeconds.observe({ class: classOf(route) }, tookMs / 1000)
    }
  }

  #tell({ submissionId, position, route, status, response, failureCode, facts }: DeliveryResult): void {
    if (status === null) return
    const names = { submission: submissionId, queueId: queueIdOf(submissionId), position, route }
    const last = facts.at(-1)
    const told = { status, failureCode, attempt: last?.attempt, remote: last?.remote?.host, response }
    this.#deps.log.info({ ...names, ...told }, 'a recipient was attempted')
  }

  /** Tries until it is recorded: the epoch makes a late result harmless, and a forgotten one is a message sent twice. */
  async #record(result: DeliveryResult): Promise<void> {
    const { log } = this.#deps
    const { submissionId, position, route, status } = result
    for (const untilMs = performance.now() + recordForMs; performance.now() < untilMs; await sleep(500)) {
      try {
        const counted = await this.#results.add(result)
        if (counted instanceof DbFault && counted.kind !== 'bad_row') throw counted
        if (counted instanceof DbFault)
          log.error({ err: counted, submissionId, position }, 'a result could not be recorded')
        else if (!counted)
          log.warn({ submissionId, position, route, status }, 'a result came after the lease was lost')
        else this.#tell(result)
        return
      } catch (error) {
        log.warn({ reason: (error as Error).message, submissionId }, 'a result waits to be recorded')
      }
    }
    log.error({ submissionId, position, status }, 'a result was given up; the message will be sent again')
  }
}
