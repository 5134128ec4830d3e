// The connections of one destination group on this node: when one may open, and when a message may go over it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import type { ReplyStage } from '../../mail/bounce/reply-code.ts'
import { firstRestMs, GroupLimits, type GroupState, longestRestMs } from './group-limits.ts'
import {
  type DestinationGroup,
  type Load,
  loadOf,
  mayEndConnectionOnly,
  meansBlocked,
  ruleFor,
  type ShapedReply,
} from './shaping-rules.ts'

/** A queue waits this long for a connection or a message on the spot. For longer waits it gives up its lease. */
const patienceMs = 5_000
/** While other queues wait for a connection of the group, a connection closes after this many messages. */
const yieldAfter = 10
/** For this long, a source without an answer from a server is not chosen for its provider. */
const silentMs = 60_000
/** How long a queue waits if its server refused it a connection while the group has others. */
const refusedWaitMs = 60_000

/** The time until which the queue must wait. */
export interface Held {
  heldUntilMs: number
  /** Whether every source rests for this provider, so that only another provider's server may take the mail. */
  isRest: boolean
}

/** `over`: this connection must close, and another may open. */
export type Admission = 'go' | 'over' | Held

/** One connection of a group, opening or open. */
export class Slot {
  readonly group: ShapedGroup
  isOpen = false
  isClosing = false
  /** The messages that were admitted, and those that the server took. */
  messages = 0
  taken = 0
  /** When the last messages were admitted. */
  admittedMs = 0
  /** The groups of the other sources that the connection could have had. */
  rivals: readonly ShapedGroup[] = []
  /** The domain of the recipients. */
  domain = ''

  constructor(group: ShapedGroup) {
    this.group = group
  }

  /** Gives up a connection because the server blocks its source. */
  rest(reply: ShapedReply): void {
    this.group.blockedBy(reply)
    this.release()
  }

  /**
   * Gives up a connection that no server answered, if another source may have one: this machine may have lost the address
   * or its route. Returns whether it did.
   */
  leaveToOthers(): boolean {
    if (this.group.isConnected || !this.rivals.some(({ hasRoom }) => hasRoom)) return false
    this.group.setAside()
    this.release()
    return true
  }

  /** Gives up a connection that could not open. Returns until when the queue waits, if that was a limit of the group. */
  fail(reply: ShapedReply): Held | null {
    const held = this.group.refusedOpening(this, reply.code === 0 ? null : reply)
    this.release()
    return held
  }

  release(): void {
    this.group.release(this)
  }
}

export interface GroupDeps {
  clock: Clock
  log: Log
}

/** The state of one group on this node. */
export class ShapedGroup {
  readonly name: string
  readonly limits: GroupLimits
  /** Whether a table names it. Only those have a label of their own in metrics, because they are few. */
  readonly isNamed: boolean
  readonly provider: string
  readonly source: DestinationGroup['source']
  readonly #deps: GroupDeps
  readonly #rules: DestinationGroup['rules']
  readonly #isOwn: boolean
  readonly #slots = new Set<Slot>()
  readonly #waiting: ((slot: Slot | null) => void)[] = []
  /** The group of all messages of the source, while it is warming up. */
  readonly #whole: ShapedGroup | null
  /** Whether a connection waits until the group may get its next message. */
  #isDelayed = false
  #silentUntilMs = 0
  /** The domain for whose recipients the server last said that it blocks the source. Null: it has taken mail since. */
  #suspect: string | null = null

  constructor(
    deps: GroupDeps,
    { name, provider, source, rules, isNamed, isOwn }: DestinationGroup,
    stored: GroupState | null,
    whole: ShapedGroup | null = null,
  ) {
    this.name = name
    this.provider = provider
    this.source = source
    this.isNamed = isNamed
    this.#whole = whole
    this.limits = new GroupLimits(rules, stored, deps.clock.nowMs())
    this.#deps = deps
    this.#rules = rules
    this.#isOwn = isOwn
  }

  get label(): string {
    return this.isNamed ? this.name : 'other'
  }

  /** Whether it has connections, or queues that wait for one. */
  get isInUse(): boolean {
    return this.#slots.size > 0 || this.#waiting.length > 0
  }

  get isPaused(): boolean {
    return this.limits.pauseMs(this.#nowMs) > 0
  }

  /** Whether the server said that it blocks the source, and has taken no mail since. */
  get isSuspect(): boolean {
    return this.#suspect !== null
  }

  get isConnected(): boolean {
    return [...this.#slots].some(({ isOpen }) => isOpen)
  }

  get connectionCount(): number {
    return this.#slots.size
  }

  /** The most messages of one job. Null: no limit is known. */
  get largestJob(): number | null {
    const limits = [this.limits.perConnection(this.#nowMs), this.#whole?.limits.perDay(this.#nowMs) ?? null]
    const known = limits.filter((limit) => limit !== null)
    return known.length > 0 ? Math.min(...known) : null
  }

  /** Whether a further connection may open at once. */
  get hasRoom(): boolean {
    return this.#waiting.length === 0 && this.#hasFree
  }

  get #nowMs(): number {
    return this.#deps.clock.nowMs()
  }

  get #hasFree(): boolean {
    // A connection without a message to send would only open and close.
    const isWaiting = this.#isDelayed || this.waitMs(1) > 0
    return !isWaiting && this.#slots.size < this.limits.connections(this.#nowMs)
  }

  /** How long `count` messages must wait, also for the warm-up of the source. 0: they may be sent now. */
  waitMs(count: number): number {
    const wholeMs = this.#whole?.limits.delayMs(this.#nowMs, count) ?? 0
    return Math.max(wholeMs, this.#silentUntilMs - this.#nowMs, this.limits.delayMs(this.#nowMs, count))
  }

  /** Prefers other sources for a minute. Not stored, because another machine may reach the servers. */
  setAside(): void {
    this.#silentUntilMs = this.#nowMs + silentMs
  }

  /** Takes a connection for a job of `wanted` messages, in the order of the requests. Queues wait for it briefly. */
  async enter(signal: AbortSignal, wanted = 1): Promise<Slot | Held> {
    const pauseMs = this.waitMs(wanted)
    if (pauseMs > patienceMs || signal.aborted) return this.#hold(Math.max(patienceMs, pauseMs))
    if (this.hasRoom) return this.#take()
    const { promise, resolve } = Promise.withResolvers<Slot | null>()
    this.#waiting.push(resolve)
    const giveUp = () => {
      const index = this.#waiting.indexOf(resolve)
      if (index >= 0) this.#waiting.splice(index, 1)
      resolve(null)
    }
    const timer = setTimeout(giveUp, patienceMs)
    signal.addEventListener('abort', giveUp, { once: true })
    const slot = await promise
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    meters.shapingWaits.inc({ group: this.label, for: 'connection' })
    return slot ?? this.#hold(Math.max(patienceMs, this.waitMs(wanted)))
  }

  /** Gives free connections to queues that wait for one. */
  grant(): void {
    while (this.#waiting.length > 0 && this.#hasFree) this.#waiting.shift()!(this.#take())
  }

  release(slot: Slot): void {
    this.#whole?.release(slot)
    if (this.#slots.delete(slot)) this.grant()
  }

  /** Decides about the next `count` messages of a connection. Waits briefly if the group may get them soon. */
  async admit(slot: Slot, count: number, signal: AbortSignal): Promise<Admission> {
    for (;;) {
      if (this.#mustClose(slot, count)) {
        slot.isClosing = true
        return 'over'
      }
      const delayMs = this.waitMs(count)
      if (delayMs === 0) {
        this.#sent(count)
        slot.messages += count
        slot.admittedMs = this.#nowMs
        return 'go'
      }
      if (delayMs > patienceMs || signal.aborted) return this.#yield(slot, delayMs, count)
      await this.#delay(delayMs, signal)
    }
  }

  /** Gives the messages to another source if one may send them soon. */
  #yield(slot: Slot, delayMs: number, count: number): Admission {
    const shortestMs = Math.min(delayMs, ...slot.rivals.map((rival) => rival.waitMs(count)))
    if (shortestMs === delayMs || shortestMs > patienceMs) return this.#hold(shortestMs)
    slot.isClosing = true
    return 'over'
  }

  #sent(count: number): void {
    this.limits.sent(this.#nowMs, count)
    this.#whole?.limits.sent(this.#nowMs, count)
  }

  async #delay(delayMs: number, signal: AbortSignal): Promise<void> {
    this.#isDelayed = true
    meters.shapingWaits.inc({ group: this.label, for: 'rate' })
    await sleep(delayMs, undefined, { signal }).catch(() => {}) // aborted: the caller sees it
    this.#isDelayed = false
  }

  #mustClose(slot: Slot, count: number): boolean {
    const perConnection = this.limits.perConnection(this.#nowMs)
    const staying = [...this.#slots].filter(({ isClosing }) => !isClosing).length
    if (staying > this.limits.connections(this.#nowMs)) return true
    // One connection is enough to wait for the next message.
    if (this.#isDelayed) return true
    // Another source tries the domain's mail.
    if (this.#suspect === slot.domain && slot.rivals.some((one) => one.hasRoom && !one.isSuspect)) return true
    if (slot.messages >= yieldAfter && this.#waiting.length > 0) return true
    return perConnection !== null && slot.messages > 0 && slot.messages + count > perConnection
  }

  accepted(slot: Slot): void {
    slot.taken++
    this.#suspect = null
    for (const limits of [this.limits, this.#whole?.limits]) limits?.arrived(slot.admittedMs, this.#nowMs)
    this.limits.accepted(this.#nowMs)
    if (this.#waiting.length > 0) this.grant()
  }

  /** Takes back messages that were admitted and not tried. */
  untried(count: number): void {
    this.#sent(-count)
  }

  /** Whether the reply means that the destination blocks the source of this group. */
  isBlock(reply: ShapedReply, stage: ReplyStage): boolean {
    return this.source !== null && meansBlocked(reply, stage, this.source.address)
  }

  /** Lets the source rest for this destination. */
  blockedBy(reply: ShapedReply): void {
    meters.shapingRefusals.inc({ group: this.label })
    // Servers of strangers may share a registered domain, and then one of them must not stop the mail of all for long.
    const maxMs = this.isNamed ? longestRestMs : firstRestMs
    if (!this.limits.blocked(this.#nowMs, statusOf(reply), maxMs)) return
    const fields = { source: this.source?.address, status: statusOf(reply), until: this.#pausedUntil }
    this.#deps.log.warn({ provider: this.provider, ...fields }, 'source address blocked: it rests')
  }

  /** Notes a refusal of a message. */
  refused(slot: Slot, reply: ShapedReply, stage: ReplyStage): void {
    if (this.isBlock(reply, stage)) this.#blockedFor(slot.domain, reply)
    else if (!this.#obeyRule(reply)) this.#refusedFor(slot, reply, stage)
  }

  /**
   * Customers of a provider may choose the replies for their own recipients. So the source rests only if the server belongs
   * to the domain, or if it refuses two domains and takes no mail in between.
   */
  #blockedFor(domain: string, reply: ShapedReply): void {
    const isCertain = this.provider === domain || (this.isSuspect && this.#suspect !== domain)
    if (isCertain) this.blockedBy(reply)
    else this.#suspect = domain
  }

  #refusedFor(slot: Slot, reply: ShapedReply, stage: ReplyStage): void {
    const load = loadOf(reply, stage)
    if (load === null) return
    const endsConnection = mayEndConnectionOnly(reply, stage)
    if (endsConnection) this.limits.ended(this.#nowMs, slot.taken)
    // The first message of the next connection shows whether the server meant more than this connection.
    if (!endsConnection || slot.taken === 0) this.#refused(reply, load)
  }

  #refused(reply: ShapedReply, load: Load): void {
    const nowMs = this.#nowMs
    meters.shapingRefusals.inc({ group: this.label })
    // A group that took nothing for an hour has not reached a limit. Its queue backs off.
    if (load === 'possible' || this.#isOwn || !this.limits.isAlive(nowMs))
      this.limits.shrink(nowMs, statusOf(reply))
    else {
      this.limits.refused(nowMs, statusOf(reply))
      this.#logPause(reply)
    }
  }

  /**
   * Notes that a connection could not open. `reply`: the server's reason, if it gave one. Returns the time until which the
   * queue waits if that was a limit of the group. Null: the destination has a fault, and its queue backs off.
   */
  refusedOpening(slot: Slot, reply: ShapedReply | null): Held | null {
    const nowMs = this.#nowMs
    if (reply && this.#obeyRule(reply)) return this.#hold(this.limits.pauseMs(nowMs))
    const open = [...this.#slots].filter((other) => other !== slot && other.isOpen).length
    const status = reply ? statusOf(reply) : 'no connection'
    const isTemporary = reply !== null && reply.code < 500 && !this.#isOwn
    if (open > 0 && (reply === null || isTemporary)) {
      meters.shapingRefusals.inc({ group: this.label })
      this.limits.shrink(nowMs, status, open)
      return isTemporary ? this.#hold(refusedWaitMs) : null
    }
    const load = reply && loadOf(reply, 'connect')
    if (load === null || !this.limits.isAlive(nowMs)) return null
    this.#refused(reply!, load)
    return this.isPaused ? this.#hold(this.limits.pauseMs(nowMs)) : null
  }

  #obeyRule(reply: ShapedReply): boolean {
    const rule = ruleFor(this.#rules, reply)
    if (!rule) return false
    meters.shapingRefusals.inc({ group: this.label })
    this.limits.pause(this.#nowMs, rule.pauseMs, `rule for ${statusOf(reply)}`)
    this.#logPause(reply)
    return true
  }

  #logPause(reply: ShapedReply): void {
    const { connections, perMinute, perHour } = this.limits.state
    const fields = { group: this.name, until: this.#pausedUntil, connections, perMinute, perHour }
    this.#deps.log.info({ ...fields, status: statusOf(reply) }, 'destination group paused')
  }

  get #pausedUntil(): Date {
    return new Date(this.limits.state.pausedUntilMs)
  }

  #take(): Slot {
    const slot = new Slot(this)
    this.#slots.add(slot)
    if (this.#whole) this.#whole.#slots.add(slot)
    return slot
  }

  /** Queues that wait for the same moment come back within a tenth of their wait after it. */
  #hold(waitMs: number): Held {
    const heldUntilMs = this.#nowMs + Math.ceil(waitMs * (1 + Math.random() / 10))
    return { heldUntilMs, isRest: this.limits.isResting(this.#nowMs) }
  }
}

/** Codes only: the text may identify a message, and every organization with mail for the group sees the state. */
function statusOf({ code, enhanced }: ShapedReply): string {
  return enhanced === null ? String(code) : `${code} ${enhanced}`
}
