// Delivers the mail of one route while this node holds the route's lease.
import type { OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { classOf, meters } from '../../base/meters.ts'
import { traced } from '../../base/trace.ts'
import { DbFault } from '../../postgres/db.ts'
import type { SmtpConnection } from '../../smtp/client/client.ts'
import type { RecipientResult, SendResult } from '../../smtp/client/transaction.ts'
import { replyLine } from '../../smtp/reply.ts'
import { isClaimed } from '../../store/domains/domains.ts'
import type { Lease } from '../../store/leases.ts'
import { type DeliveryResult, isHeld, nextDue } from '../../store/sending/deliveries.ts'
import { RoundRobin } from '../../store/sending/round-robin.ts'
import {
  backOffRoute,
  clearBackOff,
  holdRoute,
  type Round,
  type RouteFault,
  type RouteRow,
  reclaimOrphans,
} from '../../store/sending/routes.ts'
import { isOwnFault } from '../own-fault.ts'
import { readRoute } from '../route-policy.ts'
import { type DeliveryDeps, deliver } from './deliver.ts'
import { claimJobs, type DeliveryJob, untried } from './delivery-job.ts'
import type { DeliveryResults } from './delivery-results.ts'
import { failRoute } from './end-deliveries.ts'
import { unwritten } from './endings.ts'
import type { Admission, ShapedGroup, Slot } from './group-slots.ts'
import { type NextHopDeps, openRoute } from './next-hop.ts'
import type { Shaper } from './shaper.ts'

export interface CourierDeps extends DeliveryDeps {
  log: Log
  nextHop: NextHopDeps
  shaper: Shaper
  results: DeliveryResults
}

/** If a job was claimed longer ago than this, the courier checks again whether its organization's mail is held. */
const heldAfterMs = 1_000

/** For this long after the last fault, hosts that had one are asked last even if another host has taken mail since. */
const rememberFaultyMs = 3_600_000

/** The result of one job. `Carried` in `worker/route-worker.ts` describes the fields. */
interface Carried {
  fault: RouteFault | null
  isDecided: boolean
  wasTried: boolean
}

/** The operations on one route under one lease. */
export class RouteCourier {
  readonly #deps: CourierDeps
  readonly #route: Lease
  readonly #mayFinish: () => boolean
  /** The organization whose mail caused us to acquire the route. Empty for our own routes. */
  readonly #asker: string
  readonly #rounds = new RoundRobin()
  readonly #recording = new Set<Promise<void>>()
  /** The round to continue if this connection has a fault. */
  readonly #roundOf = new WeakMap<SmtpConnection, Round>()
  readonly #slots = new WeakMap<SmtpConnection, Slot>()
  /** The groups of the last connection: its own, and those of the other sources of its pool. */
  #groups: readonly ShapedGroup[] = []
  /** The messages of the job that the next connection is for. */
  #wanted = 1
  /** The hosts that were asked before the last fault, and until when they are asked last. */
  #faulty: { asked: readonly string[]; untilMs: number }

  constructor(
    deps: CourierDeps,
    route: Lease & Pick<RouteRow, 'asked' | 'failures' | 'lastFaultAt'>,
    mayFinish: () => boolean,
    organizationId: string | null,
  ) {
    this.#deps = deps
    this.#route = route
    this.#mayFinish = mayFinish
    this.#asker = organizationId ?? ''
    const { asked, failures, lastFaultAt } = route
    const untilMs = failures > 0 ? Number.POSITIVE_INFINITY : (lastFaultAt?.getTime() ?? 0) + rememberFaultyMs
    this.#faulty = { asked, untilMs }
  }

  async reclaim(): Promise<void> {
    const { db, clock, log } = this.#deps
    const orphans = await reclaimOrphans(db.writer, this.#route, clock.now())
    if (orphans > 0) log.info({ ...this.#lease, orphans }, 'orphaned deliveries of a lost owner released')
  }

  async open(signal: AbortSignal) {
    const { key } = this.#route
    const { asked, untilMs } = this.#faulty
    const { clock, nextHop, shaper } = this.#deps
    const enter = (target: { host: string; address: string }) =>
      shaper.enter(key, target, this.#wanted, signal)
    const asking = { asker: this.#asker, signal, asked: clock.nowMs() < untilMs ? asked : [], enter }
    const opened = await openRoute(nextHop, key, asking)
    if ('heldUntilMs' in opened) return { heldUntil: new Date(opened.heldUntilMs) }
    if ('connection' in opened) {
      this.#roundOf.set(opened.connection, opened.round)
      this.#takeSlot(opened.connection, opened.slot!)
      const { host, violation } = opened.connection.remote
      if (violation !== undefined) this.#deps.log.info({ route: key, host, violation }, 'TLS policy violated')
    }
    if (!('refusal' in opened)) return opened
    const { reason, isLoop } = opened.refusal
    // A domain that is moving to this deployment may have its MX here before it is proved. Its mail waits.
    if (isLoop && (await isClaimed(this.#deps.db, readRoute(key).hop)))
      return { fault: { text: reason, classification: 'dns' as const, asked: [], hasUnasked: false } }
    await failRoute(this.#deps, key, opened.refusal)
    return { refused: true as const }
  }

  /** How many connections the queue may have now. */
  get maxConnections(): number {
    const nowMs = this.#deps.clock.nowMs()
    return this.#groups.reduce((sum, { limits }) => sum + limits.connections(nowMs), 0) || 1
  }

  /** Whether the destination's group has room for a further connection. */
  get hasRoom(): boolean {
    return this.#groups.some(({ hasRoom }) => hasRoom)
  }

  async admit(connection: SmtpConnection, job: DeliveryJob, signal: AbortSignal): Promise<Admission> {
    const slot = this.#slots.get(connection)!
    const count = job.deliveries.length
    const admission = await slot.group.admit(slot, count, signal)
    // Another source must be able to take the whole job, otherwise connections would open and close for nothing.
    if (admission === 'over' && slot.rivals.length > 0) this.#wanted = count
    return admission
  }

  async close(connection: SmtpConnection, { aborted }: AbortSignal): Promise<void> {
    try {
      if (connection.isUsable && !aborted) await connection.quit()
      else connection.destroy()
    } finally {
      this.#slots.get(connection)?.release()
    }
  }

  async claim(wanted: number, passedOver: string[]): Promise<DeliveryJob[]> {
    if (!this.#mayFinish()) return []
    const claim = { ...this.#claim, wanted, passedOver }
    const { jobs, torn } = await claimJobs(this.#deps, claim, this.#record)
    for (const { fault, deliveries } of torn) {
      this.#deps.log.error(
        { err: fault, submission: deliveries[0]!.submissionId },
        'message could not be read',
      )
      this.#record(unwritten(this.#deps, { ...this.#lease, deliveries }, 'passing'))
    }
    const largest = Math.min(...this.#groups.map(({ largestJob }) => largestJob ?? Number.POSITIVE_INFINITY))
    return Number.isFinite(largest) ? jobs.flatMap((job) => parted(job, largest)) : jobs
  }

  organizationOf({ deliveries }: DeliveryJob): OrganizationId {
    return deliveries[0]!.organizationId
  }

  async carry(connection: SmtpConnection, job: DeliveryJob, waitedMs: number): Promise<Carried> {
    const mustWait = waitedMs > heldAfterMs && (await this.#isHeld(job))
    if (!mustWait) return await this.#deliver(connection, job)
    this.#slots.get(connection)?.group.untried(job.deliveries.length)
    this.giveBack([job])
    return { fault: null, isDecided: false, wasTried: false }
  }

  giveBack(jobs: DeliveryJob[]): void {
    this.#record(jobs.flatMap(untried))
  }

  async nextDue(): Promise<Date | null> {
    const { db, clock } = this.#deps
    return await nextDue(db.writer, this.#claim, clock.now())
  }

  async noteFault(failures: number, notBefore: Date, fault: RouteFault): Promise<void> {
    const { db, clock } = this.#deps
    this.#faulty = { asked: fault.asked, untilMs: Number.POSITIVE_INFINITY }
    await backOffRoute(db.writer, this.#route, { failures, notBefore, ...fault }, clock.now())
  }

  async clearFault(): Promise<void> {
    this.#faulty.untilMs = this.#deps.clock.nowMs() + rememberFaultyMs
    await clearBackOff(this.#deps.db.writer, this.#route)
  }

  /** Lets the queue wait for the limits of its destination's group, which is no fault. */
  async noteHold(until: Date): Promise<void> {
    await holdRoute(this.#deps.db.writer, this.#route, until)
  }

  async recorded(): Promise<void> {
    while (this.#recording.size > 0) await Promise.all(this.#recording)
  }

  get #lease(): { route: string; epoch: number } {
    return { route: this.#route.key, epoch: this.#route.epoch }
  }

  get #claim() {
    return { ...this.#lease, rounds: this.#rounds }
  }

  readonly #record = (results: DeliveryResult[]): void => {
    for (const result of results) {
      const recorded = this.#deps.results.record(result).finally(() => this.#recording.delete(recorded))
      this.#recording.add(recorded)
    }
  }

  /** Whether the organization's mail is held. True if the database does not answer, so that the job is given back. */
  async #isHeld(job: DeliveryJob): Promise<boolean> {
    return await isHeld(this.#deps.db, this.organizationOf(job)).catch(() => true)
  }

  async #deliver(connection: SmtpConnection, job: DeliveryJob): Promise<Carried> {
    const open = new Map(job.deliveries.map((delivery) => [delivery.position, delivery]))
    const slot = this.#slots.get(connection)!
    const { group } = slot
    const heard = (result: RecipientResult) => noteResult(slot, result)
    const isBlock = group.isBlock.bind(group)
    let isDecided = false
    let wasTried = false
    const take = (result: DeliveryResult) => {
      open.delete(result.position)
      isDecided ||= result.status === 'delivered' || result.status === 'bounced'
      wasTried ||= result.outcome?.beganAt != null
      this.#count(job, result)
      this.#record([result])
    }
    try {
      const describe = () => ({
        'posthorn.submission': job.content.submissionId,
        'posthorn.route': job.route,
        'posthorn.recipients': job.deliveries.length,
        'server.address': connection.remote.host,
      })
      const sent = await traced('deliver', describe, () =>
        deliver(this.#deps, connection, job, { mayFinish: this.#mayFinish, record: take, heard, isBlock }),
      )
      if (sent.reply && !sent.recipients.some((result) => 'reply' in result && result.reply === sent.reply))
        group.refused(slot, sent.reply, 'message')
      const fault = this.#routeFault(connection, job, sent)
      // A paused group waits, so its queues need no back-off of their own.
      return { fault: group.isPaused ? null : fault, isDecided, wasTried }
    } catch (error) {
      const results = await this.#setAside({ ...job, deliveries: [...open.values()] }, error)
      for (const result of results) take(result)
      return { fault: null, isDecided, wasTried }
    }
  }

  /**
   * Returns the results of the remaining recipients, after a fault of ours ended the job. If the database was lost or had a
   * conflict, the claims are released without an attempt. A torn page may stay torn, so its mail waits by the schedule.
   */
  async #setAside(job: DeliveryJob, error: unknown): Promise<DeliveryResult[]> {
    const isLost = error instanceof DbFault && error.kind !== 'damaged' && isOwnFault(error)
    const { submissionId: submission } = job.content
    if (isLost) {
      this.#deps.results.fail(error)
      return untried(job)
    }
    this.#deps.log.error({ err: error, submission }, 'message could not be composed')
    const isMissing = (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'
    const mayPass = isMissing ? !(await this.#deps.blobs.isThere()) : isOwnFault(error)
    return unwritten(this.#deps, job, mayPass ? 'passing' : 'lasting')
  }

  /**
   * Returns the route's fault without the text of the server's reply, which goes to the log. Every organization with mail for
   * this destination sees the fault, but the reply may identify the message that was being sent.
   */
  #routeFault(
    connection: SmtpConnection,
    job: DeliveryJob,
    { fault, reply }: Pick<SendResult, 'fault' | 'reply'>,
  ): RouteFault | null {
    if (!fault) return null
    const { remote } = connection
    const { route, content } = job
    const words = reply ? replyLine(reply) : null
    this.#deps.log.info(
      { route, submission: content.submissionId, fault: fault.message, words },
      'connection lost during a transaction',
    )
    const status = reply && [reply.code, reply.enhanced].filter(Boolean).join(' ')
    const ending = status ? `the server ended the connection with ${status}` : fault.message
    const text = fault.kind === 'protocol' ? 'the server broke the protocol' : ending
    const round = this.#roundOf.get(connection) ?? { asked: [], hasUnasked: false }
    return { text: `${remote.host} [${remote.ip}]: ${text}`, classification: 'network', ...round }
  }

  #takeSlot(connection: SmtpConnection, slot: Slot): void {
    slot.isOpen = true
    this.#wanted = 1
    const { source } = slot.group
    if (source) connection.remote.source = source.address
    this.#groups = [slot.group, ...slot.rivals]
    this.#slots.set(connection, slot)
  }

  #count({ route, content }: DeliveryJob, { status }: DeliveryResult): void {
    meters.attempts.inc({ class: classOf(route), outcome: status ?? 'untried' })
    if (status !== 'delivered') return
    const tookMs = this.#deps.clock.nowMs() - content.createdAt.getTime()
    meters.deliverySeconds.observe({ class: classOf(route) }, tookMs / 1000)
  }
}

/** Divides a job, so that one connection may carry each part. */
function parted(job: DeliveryJob, max: number): DeliveryJob[] {
  const starts = Array.from({ length: Math.ceil(job.deliveries.length / max) }, (_, index) => index * max)
  return starts.map((start) => ({ ...job, deliveries: job.deliveries.slice(start, start + max) }))
}

/** Lets the destination's group learn from the answer to one recipient. */
function noteResult(slot: Slot, result: RecipientResult): void {
  const { group } = slot
  if (result.outcome === 'delivered') group.accepted(slot)
  // With the outcome `unknown` the message may have been taken.
  else if (result.outcome !== 'unknown') group.untried(1)
  if (result.outcome === 'refused') group.refused(slot, result.reply, result.stage)
}
