// The present limits of one destination group: they shrink when its servers refuse for load, and grow with success. Pure.
import { warmUpAt } from '../source-pools.ts'
import { SentCounts, type StoredCounts } from './sent-counts.ts'
import type { GroupRules, Rate } from './shaping-rules.ts'

/** The state of a group, as nodes share it. It holds for all nodes together. */
export interface GroupState {
  /** The connections that the group may have now. */
  connections: number
  /** Messages in a minute and in an hour that the group was seen to take at most. Null: no such limit is known. */
  perMinute: number | null
  perHour: number | null
  pausedUntilMs: number
  /** Refusals for load without a success in between, and the time of the first and the last of them. */
  refusals: number
  refusedFirstMs: number
  refusedAtMs: number
  /** The rule or the reply that paused the group or reduced its limits. Has no text of a server. */
  reason: string | null
  /** Messages sent, by the length of the period in milliseconds. */
  sent: Record<string, StoredCounts>
}

/** The part of the group's limits that this node has: one of `nodes` equal ones, by its position among them. */
export interface NodeShare {
  nodes: number
  rank: number
}

const alone: NodeShare = { nodes: 1, rank: 0 }
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** A destination that was never refused begins here, and reaches its rule after a few dozen messages. */
const usualFirst = 5
const shrinkFactor = 3 / 4
/** After a refusal the limit of connections grows by one in this time, and shrinks once in it. */
const growMs = 10_000
/** The pause after the first refusal. It doubles with each further one, up to ten minutes. */
const firstPauseMs = 15_000
const maxPauseMs = 600_000
/** How long a source rests that a destination blocks. */
export const firstRestMs = hourMs
/** The rest doubles with each further block, up to this, at a provider that a table names. */
export const longestRestMs = dayMs
/** Learned rates never go below these, and grow by a fiftieth, at least 1, in each period that they filled. */
const least = { perMinute: 5, perHour: 20 }
const learnedGrowth = 1 / 50
const learnedCut = 0.95
/** Without a refusal for this long, learned rates are forgotten. */
const learnedMs = dayMs
/** Begins the reason of a source that rests. */
export const blockedReason = 'blocked: '
/** Shares of a remainder change their node at this interval, so that none waits for good. */
const rotationMs = 60_000

const learnedPeriods = { perMinute: minuteMs, perHour: hourMs } as const
type Learned = keyof typeof learnedPeriods
const learnedNames: readonly Learned[] = ['perMinute', 'perHour']

/**
 * A group is *open*, *limited* or *paused*.
 *
 * - *open*: up to the connections and rates of its rules. The number of connections begins at 5 and grows by one with each
 *   as many successes. Only a refusal ends this state.
 * - *paused*: nothing is sent. Entered by a refusal for load, for 15 s at first and up to 10 min if refusals go on, and by
 *   a reply that a rule names. The next message after it is a test: a success ends the series of refusals.
 * - *limited*: after a refusal. Three quarters of the connections are left, and grow by one in 10 s at most. The messages
 *   that went within the last minute become a limit. If refusals go on for longer than a minute, the limit must be a
 *   longer one, so the messages of the last hour become a limit. Learned rates grow while they are used up.
 *
 * A server that ends a connection after some messages teaches how many a connection may carry, for an hour. That is no state.
 */
export class GroupLimits {
  readonly #rules: GroupRules
  readonly #state: GroupState
  readonly #counts = new Map<number, SentCounts>()
  #share = alone
  #successes = 0
  /** When the connections last changed, and when they last shrank. */
  #changedMs = Number.NEGATIVE_INFINITY
  #shrunkMs = Number.NEGATIVE_INFINITY
  #acceptedMs = Number.NEGATIVE_INFINITY
  /** How many messages servers took before they ended a connection. Not stored: one refusal teaches it again. */
  #perConnection: { messages: number; untilMs: number } | null = null
  /** When each learned rate last changed, and whether it was used up since. */
  readonly #learned: Record<Learned, { changedMs: number; isUsedUp: boolean }>
  /** Whether the state differs from the stored one. */
  isChanged = false

  constructor(rules: GroupRules, stored: GroupState | null, nowMs: number) {
    this.#rules = rules
    this.#state = stored ?? initialState(rules)
    this.#state.connections = Math.min(this.#state.connections, rules.connections)
    const ruled = rules.rates.map((rate) => rate.periodMs)
    for (const periodMs of new Set([minuteMs, hourMs, ...ruled, ...(rules.warmUp ? [dayMs] : [])]))
      this.#counts.set(periodMs, new SentCounts(periodMs, stored?.sent[periodMs]))
    if (this.#counts.get(hourMs)!.count(nowMs) > 0) this.#acceptedMs = nowMs
    this.#learned = {
      perMinute: { changedMs: nowMs, isUsedUp: false },
      perHour: { changedMs: nowMs, isUsedUp: false },
    }
  }

  /** The state to store. Each node has sent about as many messages as this one, so the counts are multiplied. */
  get state(): GroupState {
    const { nodes } = this.#share
    const sent = Object.fromEntries(
      [...this.#counts].map(([periodMs, counts]) => [periodMs, counts.storedFor(nodes)]),
    )
    return { ...this.#state, sent }
  }

  /** Whether the state is worth a row: the group was refused, or its rules count messages. */
  get mustBeStored(): boolean {
    const { rates, warmUp } = this.#rules
    return rates.length > 0 || warmUp !== undefined || this.#state.reason !== null
  }

  /** Takes over what another node has stored since. Counts of messages stay this node's own. */
  adopt({ sent: _, ...stored }: GroupState): void {
    Object.assign(this.#state, stored, {
      connections: Math.min(stored.connections, this.#rules.connections),
    })
  }

  setShare(share: NodeShare): void {
    // The messages of nodes that left are still within the period. Each had sent about as many as this one. A node that
    // joins takes over its part of the counts, so counts do not grow when a node comes and goes.
    if (share.nodes !== this.#share.nodes)
      for (const counts of this.#counts.values()) counts.scale(this.#share.nodes / share.nodes)
    this.#share = share
  }

  /** How many connections this node may have. After a refusal one message is a test, for all nodes. */
  connections(nowMs: number): number {
    const { connections, refusals } = this.#state
    return this.#partOf(refusals > 0 ? 1 : connections, nowMs)
  }

  pauseMs(nowMs: number): number {
    return Math.max(0, this.#state.pausedUntilMs - nowMs)
  }

  /** How long `count` messages must wait. 0: they may be sent now. */
  delayMs(nowMs: number, count: number): number {
    let delayMs = this.pauseMs(nowMs)
    for (const rate of this.#rules.rates) delayMs = Math.max(delayMs, this.#waitMs(rate, nowMs, count))
    const day = this.#warmUpAt(nowMs)
    // The next day of the plan may allow more.
    if (day) delayMs = Math.max(delayMs, Math.min(this.#waitMs(day, nowMs, count), day.untilMs - nowMs))
    for (const name of learnedNames) {
      const most = this.#state[name]
      if (most === null) continue
      const waitMs = this.#waitMs({ count: most, periodMs: learnedPeriods[name] }, nowMs, count)
      if (waitMs > 0) this.#learned[name].isUsedUp = true
      delayMs = Math.max(delayMs, waitMs)
    }
    return delayMs
  }

  /** Counts messages that are being sent. A negative count takes back messages that the server did not take. */
  sent(nowMs: number, count: number): void {
    for (const counts of this.#counts.values()) counts.add(nowMs, count)
    if (this.mustBeStored) this.isChanged = true
  }

  /** Counts a message when its server has answered: it may have arrived then, long after it was admitted. */
  arrived(admittedMs: number, nowMs: number): void {
    for (const counts of this.#counts.values()) counts.move(admittedMs, nowMs, 1)
    if (this.mustBeStored) this.isChanged = true
  }

  accepted(nowMs: number): void {
    this.#acceptedMs = nowMs
    if (nowMs < this.#state.pausedUntilMs) return
    if (this.#state.refusals > 0) this.#change({ refusals: 0 })
    this.#growConnections(nowMs)
    for (const name of learnedNames) this.#growLearned(name, nowMs)
  }

  /** A server refused for load: a message, or a connection when none was open. */
  refused(nowMs: number, reason: string): void {
    // These are answers to what was under way when the pause began.
    if (nowMs < this.#state.pausedUntilMs) return
    const { refusals, refusedFirstMs } = this.#state
    const pauseMs = Math.min(firstPauseMs * 2 ** Math.min(refusals, 10), maxPauseMs)
    this.#change({
      refusals: refusals + 1,
      refusedFirstMs: refusals === 0 ? nowMs : refusedFirstMs,
      refusedAtMs: nowMs,
      pausedUntilMs: nowMs + pauseMs,
      reason,
    })
    this.#learn(nowMs)
    this.shrink(nowMs, reason)
  }

  /** The messages that the warm-up plan allows in 24 hours now. Null: there is no plan, or it is over. */
  perDay(nowMs: number): number | null {
    return this.#warmUpAt(nowMs)?.count ?? null
  }

  /** The messages that one connection may carry. Null: no limit is known. */
  perConnection(nowMs: number): number | null {
    const { messages, untilMs } = this.#perConnection ?? { messages: 0, untilMs: 0 }
    const ruled = this.#rules.messagesPerConnection
    return nowMs < untilMs ? Math.min(messages, ruled ?? messages) : ruled
  }

  /** A server ended a connection that had carried `messages`. 0: that is no limit of connections, so none is known. */
  ended(nowMs: number, messages: number): void {
    this.#perConnection = messages > 0 ? { messages, untilMs: nowMs + hourMs } : null
  }

  /** A server refused a further connection, or a message in a way that may mean load. */
  shrink(nowMs: number, reason: string, open: number = this.#state.connections): void {
    if (nowMs - this.#shrunkMs < growMs) return
    const connections = Math.max(1, Math.floor(Math.min(this.#state.connections, open) * shrinkFactor))
    this.#changedMs = nowMs
    this.#shrunkMs = nowMs
    this.#successes = 0
    this.#change({ connections, refusedAtMs: nowMs, reason })
  }

  /** A rule pauses the group. */
  pause(nowMs: number, pauseMs: number, reason: string): void {
    if (nowMs + pauseMs <= this.#state.pausedUntilMs) return
    this.#change({ pausedUntilMs: nowMs + pauseMs, refusedAtMs: nowMs, reason })
  }

  /** The destination blocks the source of the group, which rests up to `maxMs`. Returns whether the rest begins now. */
  blocked(nowMs: number, status: string, maxMs: number): boolean {
    const { refusals, refusedFirstMs, reason } = this.#state
    // These are answers to messages that were under way when the rest began.
    if (this.isResting(nowMs)) return false
    // Refusals for load are not a part of the series.
    const blocks = reason?.startsWith(blockedReason) ? refusals : 0
    this.#change({
      refusals: blocks + 1,
      refusedFirstMs: blocks === 0 ? nowMs : refusedFirstMs,
      refusedAtMs: nowMs,
      pausedUntilMs: nowMs + Math.min(firstRestMs * 2 ** Math.min(blocks, 10), maxMs),
      reason: blockedReason + status,
    })
    return true
  }

  /** Whether the source of the group rests, because the destination blocks it. */
  isResting(nowMs: number): boolean {
    const { pausedUntilMs, reason } = this.#state
    return nowMs < pausedUntilMs && reason?.startsWith(blockedReason) === true
  }

  /** Whether the group took a message within the last hour. If not, a refused connection is a fault of its queue. */
  isAlive(nowMs: number): boolean {
    return nowMs - this.#acceptedMs < hourMs
  }

  #change(changes: Partial<GroupState>): void {
    Object.assign(this.#state, changes)
    this.isChanged = true
  }

  #growConnections(nowMs: number): void {
    const { connections, refusedAtMs } = this.#state
    this.#successes++
    if (connections >= this.#rules.connections || this.#successes < connections / this.#share.nodes) return
    if (refusedAtMs > 0 && nowMs - this.#changedMs < growMs) return
    this.#successes = 0
    this.#changedMs = nowMs
    this.#state.connections = connections + 1
    if (refusedAtMs > 0) this.isChanged = true
  }

  #learn(nowMs: number): void {
    const { refusals, refusedFirstMs } = this.#state
    const isLong = refusals > 1 && nowMs - refusedFirstMs > minuteMs
    const name = isLong ? 'perHour' : 'perMinute'
    const known = this.#state[name]
    const seen = this.#counts.get(learnedPeriods[name])!.count(nowMs) * this.#share.nodes
    const most = known === null ? seen : Math.min(known, seen) * learnedCut
    this.#change({ [name]: Math.max(least[name], Math.floor(most)) })
    this.#learned[name] = { changedMs: nowMs, isUsedUp: false }
  }

  #growLearned(name: Learned, nowMs: number): void {
    const most = this.#state[name]
    if (most === null) return
    const learned = this.#learned[name]
    if (nowMs - this.#state.refusedAtMs > learnedMs) {
      this.#change({ [name]: null })
      return
    }
    if (nowMs - learned.changedMs < learnedPeriods[name] || !learned.isUsedUp) return
    this.#learned[name] = { changedMs: nowMs, isUsedUp: false }
    this.#change({ [name]: most + Math.max(1, Math.floor(most * learnedGrowth)) })
  }

  #warmUpAt(nowMs: number) {
    return this.#rules.warmUp ? warmUpAt(this.#rules.warmUp, nowMs) : null
  }

  #waitMs({ count, periodMs }: Rate, nowMs: number, wanted: number): number {
    const part = this.#partOf(count, nowMs)
    // No part now: the node waits for its part of the next minute.
    if (part === 0) return rotationMs - (nowMs % rotationMs)
    // More recipients than the rate allows go when nothing else is within the period.
    return this.#counts.get(periodMs)!.waitMs(nowMs, Math.max(0, part - wanted))
  }

  /** This node's part of a limit. The remainder of the division changes its nodes every minute. */
  #partOf(limit: number, nowMs: number): number {
    const { nodes, rank } = this.#share
    const position = (rank + Math.floor(nowMs / rotationMs)) % nodes
    return Math.floor(limit / nodes) + (position < limit % nodes ? 1 : 0)
  }
}

function initialState({ connections, firstConnections = usualFirst }: GroupRules): GroupState {
  return {
    connections: Math.min(connections, firstConnections),
    perMinute: null,
    perHour: null,
    pausedUntilMs: 0,
    refusals: 0,
    refusedFirstMs: 0,
    refusedAtMs: 0,
    reason: null,
    sent: {},
  }
}
