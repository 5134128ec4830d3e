// Records and logs the results of deliveries. Commits them in batches, and retries until they are stored.
import { setTimeout as sleep } from 'node:timers/promises'
import { Batch } from '../../base/batch.ts'
import type { Clock } from '../../base/clock.ts'
import { queueIdOf } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { OutageLog } from '../../base/outage-log.ts'
import { commitRows } from '../../postgres/commit.ts'
import { type Db, DbFault } from '../../postgres/db.ts'
import { type DeliveryResult, recordResults } from '../../store/sending/deliveries.ts'
import { isOwnFault } from '../own-fault.ts'

export interface ResultsDeps {
  db: Db
  clock: Clock
  log: Log
  /** Called after each commit of results, because it may have added events for customers. */
  wake(): void
}

/** A result is retried for this long. A message whose result is given up is sent again. */
const recordForMs = 120_000
/**
 * The minimum time between two commits. Connections do not wait for the commits. Measured: 89 us of PostgreSQL's CPU per
 * result in batches of 30, 142 us in batches of 8.
 */
const minIntervalMs = 25

/** The results of a node's deliveries, for all its routes. */
export class DeliveryResults {
  readonly #deps: ResultsDeps
  readonly #batch: Batch<DeliveryResult, boolean | DbFault>
  readonly #outage: OutageLog

  constructor(deps: ResultsDeps) {
    this.#deps = deps
    this.#outage = new OutageLog({ log: deps.log, work: 'deliveries' })
    this.#batch = new Batch({
      name: 'results',
      minIntervalMs,
      flush: (results) => this.#commit(results),
    })
  }

  /** Retries until it is recorded. The epoch makes a late result harmless, but a lost one means a message sent twice. */
  async record(result: DeliveryResult): Promise<void> {
    const { log } = this.#deps
    const { submissionId, position, route, status } = result
    let fields = result
    for (const untilMs = performance.now() + recordForMs; performance.now() < untilMs; await sleep(500)) {
      try {
        const counted = await this.#batch.add(fields)
        if (counted instanceof DbFault && isOwnFault(counted)) throw counted
        if (!(counted instanceof DbFault)) {
          this.#outage.succeed()
          if (counted) this.#logResult(fields)
          else log.warn({ submissionId, position, route, status }, 'result arrived after the lease was lost')
          return
        }
        log.error({ err: counted, submissionId, position }, 'result could not be recorded')
        if (fields !== result) return
        fields = withoutWords(result)
      } catch (error) {
        this.fail(error)
      }
    }
    log.error({ submissionId, position, status }, 'result dropped; the message will be sent again')
  }

  /** Notes that the database failed, on recording a result or during a delivery. Logs each outage once. */
  fail(error: unknown): void {
    this.#outage.fail(error)
  }

  async #commit(results: DeliveryResult[]): Promise<(boolean | DbFault)[]> {
    const { db, clock, wake } = this.#deps
    const outcomes = await commitRows(results, (rows) => recordResults(db.writer, rows, clock.now()))
    wake()
    return outcomes
  }

  #logResult({
    submissionId,
    position,
    route,
    status,
    response,
    failureCode,
    outcome,
  }: DeliveryResult): void {
    if (!outcome) return
    const names = { submission: submissionId, queueId: queueIdOf(submissionId), position, route }
    const { attempt, remote } = outcome
    const fields = { status, failureCode, attempt, remote: remote?.host, response }
    this.#deps.log.info({ ...names, ...fields }, 'delivery attempted')
  }
}

/** Returns the result without the peer's text, which the database may refuse. The status is then still recorded. */
function withoutWords(result: DeliveryResult): DeliveryResult {
  const wordless = { remote: null, enhancedStatus: null, conversation: null }
  return { ...result, response: null, outcome: result.outcome && { ...result.outcome, ...wordless } }
}
