// The delivery verbs for one destination queue, bound to its lease; results are recorded in groups.
import { setTimeout as sleep } from 'node:timers/promises'
import { Batch } from '../../base/batch.ts'
import { type OrganizationId, queueIdOf } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { classOf, meters } from '../../base/meters.ts'
import { OutageLog } from '../../base/outage-log.ts'
import { traced } from '../../base/trace.ts'
import type { HopAsking } from '../../dns/mx.ts'
import { commitRows } from '../../postgres/commit.ts'
import { DbFault } from '../../postgres/db.ts'
import type { SmtpConnection } from '../../smtp/client/client.ts'
import type { SendResult } from '../../smtp/client/transaction.ts'
import { replyLine } from '../../smtp/reply.ts'
import type { Lease } from '../../store/leases.ts'
import { type DeliveryResult, isHeld, nextDue, recordResults } from '../../store/sending/deliveries.ts'
import { RoundRobin } from '../../store/sending/round-robin.ts'
import { backOffRoute, clearBackOff, type RouteFault, reclaimOrphans } from '../../store/sending/routes.ts'
import { isOwnFault } from '../own-fault.ts'
import { type DeliveryDeps, deliver } from './deliver.ts'
import { claimJobs, type DeliveryJob, untried } from './delivery-job.ts'
import { failRoute } from './end-deliveries.ts'
import { unwritten } from './endings.ts'
import { type NextHopDeps, openRoute } from './next-hop.ts'

export interface CourierDeps extends DeliveryDeps {
  log: Log
  nextHop: NextHopDeps
  /** Called when results, which customers are told of, have been recorded. */
  wake(): void
}

/** A result is worth recording for as long as this: what is forgotten is sent again. */
const recordForMs = 120_000
/** The line goes on meanwhile. Measured: 89 us of PostgreSQL's CPU a result in batches of 30, 142 in batches of 8. */
const minIntervalMs = 25
/** Of a job that had to wait for so long after its claim it is asked again whether it may go out. */
const heldAfterMs = 1_000

/** Carries mail for the routes that this node owns. */
export class Courier {
  readonly #deps: CourierDeps
  readonly #results: Batch<DeliveryResult, boolean | DbFault>
  readonly #outage: OutageLog

  constructor(deps: CourierDeps) {
    this.#deps = deps
    this.#outage = new OutageLog({ log: deps.log, work: 'deliveries' })
    this.#results = new Batch({
      name: 'results',
      minIntervalMs,
      flush: (results) => this.#commit(results),
    })
  }

  verbsFor(route: Lease, mayFinish: () => boolean, organizationId: string | null) {
    const { db, clock, log, nextHop } = this.#deps
    const lease = { route: route.key, epoch: route.epoch }
    const rounds = new RoundRobin()
    const recording = new Set<Promise<void>>()
    const record = (results: DeliveryResult[]) => {
      for (const result of results) {
        const recorded = this.#record(result).finally(() => recording.delete(recorded))
        recording.add(recorded)
      }
    }
    return {
      reclaim: async () => {
        const orphans = await reclaimOrphans(db.writer, route, clock.now())
        if (orphans > 0) log.info({ ...lease, orphans }, 'took back what a lost owner had on the wire')
      },
      open: (signal: AbortSignal) =>
        this.#open(nextHop, lease.route, { asker: organizationId ?? '', signal }),
      claim: async (wanted: number, passedOver: string[]) =>
        mayFinish() ? await claimJobs(this.#deps, { ...lease, rounds, wanted, passedOver }, record) : [],
      organizationOf,
      carry: async (line: SmtpConnection, job: DeliveryJob, waitedMs: number) => {
        // Where the database does not say, it is given back as well.
        const mustWait = waitedMs > heldAfterMs && (await isHeld(db, organizationOf(job)).catch(() => true))
        if (!mustWait) return await this.#carry(line, job, mayFinish, record)
        record(untried(job))
        return { fault: null, decided: false, tried: false }
      },
      giveBack: (jobs: DeliveryJob[]) => record(jobs.flatMap(untried)),
      nextDue: () => nextDue(db.writer, { ...lease, rounds }, clock.now()),
      noteFault: (failures: number, notBefore: Date, fault: RouteFault) =>
        backOffRoute(db.writer, route, { failures, notBefore, ...fault }, clock.now()),
      clearFault: () => clearBackOff(db.writer, route),
      recorded: async () => {
        while (recording.size > 0) await Promise.all(recording)
      },
    }
  }

  async #open(nextHop: NextHopDeps, route: string, asking: Required<HopAsking>) {
    const opened = await openRoute(nextHop, route, asking)
    if (!('refusal' in opened)) return opened
    await failRoute(this.#deps, route, opened.refusal)
    return { refused: true as const }
  }

  async #carry(
    line: SmtpConnection,
    job: DeliveryJob,
    mayFinish: () => boolean,
    record: (results: DeliveryResult[]) => void,
  ) {
    const open = new Map(job.deliveries.map((delivery) => [delivery.position, delivery]))
    let decided = false
    let tried = false
    const take = (result: DeliveryResult) => {
      open.delete(result.position)
      decided ||= result.status === 'delivered' || result.status === 'bounced'
      tried ||= result.outcome?.beganAt != null
      this.#count(job, result)
      record([result])
    }
    try {
      const describe = () => ({
        'posthorn.submission': job.content.submissionId,
        'posthorn.route': job.route,
        'posthorn.recipients': job.deliveries.length,
        'server.address': line.remote.host,
      })
      const sent = await traced('deliver', describe, () =>
        deliver(this.#deps, line, job, { mayFinish, record: take }),
      )
      return { fault: this.#routeFault(line, job, sent), decided, tried }
    } catch (error) {
      const results = await this.#setAside({ ...job, deliveries: [...open.values()] }, error)
      for (const result of results) take(result)
      return { fault: null, decided, tried }
    }
  }

  /** What becomes of recipients whose message met a fault of ours. That the database went away is no attempt of theirs. */
  async #setAside(job: DeliveryJob, error: unknown): Promise<DeliveryResult[]> {
    const isLost = error instanceof DbFault && isOwnFault(error)
    const { submissionId: submission } = job.content
    if (isLost) {
      this.#outage.fail(error)
      return untried(job)
    }
    this.#deps.log.error({ err: error, submission }, 'a message could not be written')
    const isMissing = (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'
    const mayPass = isMissing ? !(await this.#deps.blobs.isThere()) : isOwnFault(error)
    return unwritten(this.#deps, job, mayPass ? 'passing' : 'lasting')
  }

  /**
   * The route's fault, without the peer's words, which are for the log: within a transaction they may name whose mail it
   * was, and the fault is shown to everyone whose mail waits for this destination.
   */
  #routeFault(
    { remote }: SmtpConnection,
    job: DeliveryJob,
    { fault, reply }: Pick<SendResult, 'fault' | 'reply'>,
  ): RouteFault | null {
    if (!fault) return null
    const { route, content } = job
    const words = reply ? replyLine(reply) : null
    this.#deps.log.info(
      { route, submission: content.submissionId, fault: fault.message, words },
      'a connection was lost within a transaction',
    )
    const status = reply && [reply.code, reply.enhanced].filter(Boolean).join(' ')
    const said = status ? `the server ended the connection with ${status}` : fault.message
    const text = fault.kind === 'protocol' ? 'the server broke the protocol' : said
    return { text: `${remote.host} [${remote.ip}]: ${text}`, classification: 'network' }
  }

  async #commit(results: DeliveryResult[]): Promise<(boolean | DbFault)[]> {
    const { db, clock, wake } = this.#deps
    const outcomes = await commitRows(results, (rows) => recordResults(db.writer, rows, clock.now()))
    wake()
    return outcomes
  }

  #count({ route, content }: DeliveryJob, { status }: DeliveryResult): void {
    meters.attempts.inc({ class: classOf(route), outcome: status ?? 'untried' })
    if (status !== 'delivered') return
    const tookMs = this.#deps.clock.nowMs() - content.createdAt.getTime()
    meters.deliverySeconds.observe({ class: classOf(route) }, tookMs / 1000)
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
    this.#deps.log.info({ ...names, ...fields }, 'a recipient was attempted')
  }

  /** Tries until it is recorded: the epoch makes a late result harmless, and a forgotten one is a message sent twice. */
  async #record(result: DeliveryResult): Promise<void> {
    const { log } = this.#deps
    const { submissionId, position, route, status } = result
    let fields = result
    for (const untilMs = performance.now() + recordForMs; performance.now() < untilMs; await sleep(500)) {
      try {
        const counted = await this.#results.add(fields)
        if (counted instanceof DbFault && isOwnFault(counted)) throw counted
        if (!(counted instanceof DbFault)) {
          this.#outage.succeed()
          if (counted) this.#logResult(fields)
          else log.warn({ submissionId, position, route, status }, 'a result came after the lease was lost')
          return
        }
        log.error({ err: counted, submissionId, position }, 'a result could not be recorded')
        if (fields !== result) return
        fields = withoutWords(result)
      } catch (error) {
        this.#outage.fail(error)
      }
    }
    log.error({ submissionId, position, status }, 'a result was given up; the message will be sent again')
  }
}

function organizationOf({ deliveries }: DeliveryJob): OrganizationId {
  return deliveries[0]!.organizationId
}

/** The result without anything that a peer has said: where its words cannot be stored, what became of the message can. */
function withoutWords(result: DeliveryResult): DeliveryResult {
  const said = { remote: null, enhancedStatus: null, conversation: null }
  return { ...result, response: null, outcome: result.outcome && { ...result.outcome, ...said } }
}
