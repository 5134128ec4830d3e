// Recent behaviour of peers across sessions, by address and network: connections, messages, errors, unknown recipients.
import { setTimeout as wait } from 'node:timers/promises'
import { BoundedMap } from '../../base/bounded-map.ts'
import type { Clock } from '../../base/clock.ts'
import { networkOf, wideNetworkOf } from '../../base/ip-address.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { type Reply, reply } from '../reply.ts'
import type { Misdeed, Peers } from './peers.ts'
import type { ServerLimits } from './server-options.ts'

/** The limits of a network are this many times those of an address, so one bad host does not shut out its neighbours. */
const networkShare = 4
const minuteMs = 60_000
const turnedAwayMs = 600_000
/** Up to this share of the limit, refusals are sent at once. It covers typing errors and outdated recipient lists. */
const promptShare = 0.4
const delayStepMs = 100
const maxDelayMs = 5_000
/** Delayed replies hold their connections: at most this share of all connections. */
const delayedShare = 0.25
/** The addresses and networks seen last are remembered. Measured: 300 bytes each. */
const maxRemembered = 100_000

/** Counts that recover fully within a minute. Above the limit a peer gets 421 until then. */
type Rate = 'connections' | 'messages'
/** Why a peer was refused; a label of the metrics. */
type Reason = Rate | Misdeed | 'delayed' | 'full'

interface Standing extends Record<Rate | Misdeed, number> {
  atMs: number
  /** When the block ends, and its reason. */
  untilMs: number
  why: Misdeed
}

const texts: Record<Reason, string> = {
  connections: 'Too many connections',
  messages: 'Too many messages',
  errors: 'Too many errors',
  unknown: 'Too many unknown recipients',
  delayed: 'Too many errors',
  full: 'Too many connections',
}

/**
 * Counts the actions of peers across connections. Each counts fully for the address, and as a quarter for its network.
 * A peer that probes for names or commands gets ever later replies, and is then blocked for ten minutes. Each accepted
 * message earns back one error. Callers must not count trusted peers.
 */
export class Reputation implements Peers {
  readonly #limits: ServerLimits
  readonly #clock: Clock
  readonly #log: Log
  readonly #max: Record<Rate | Misdeed, number>
  readonly #standings = new BoundedMap<string, Standing>(maxRemembered)
  readonly #open = new Map<string, number>()
  #admitted = 0
  #delayed = 0

  constructor(limits: ServerLimits, { clock, log }: { clock: Clock; log: Log }) {
    this.#limits = limits
    this.#clock = clock
    this.#log = log
    this.#max = {
      connections: limits.connectionsPerMinutePerAddress,
      messages: limits.messagesPerMinutePerAddress,
      errors: limits.maxErrorsPerAddress,
      unknown: limits.maxUnknownPerAddress,
    }
  }

  /** Counts a connection. Null admits it, and then one `leave` must follow; otherwise the reply to close with. */
  admit(address: string): Reply | null {
    if (this.#admitted >= this.#limits.maxConnections) return refuse('full')
    const keys = networksOf(address)
    const max = this.#limits.maxConnectionsPerAddress
    const isFull = keys.some(
      (key, index) => (this.#open.get(key) ?? 0) >= max * (index === 0 ? 1 : networkShare),
    )
    if (isFull || !this.#spend(address, 'connections')) return refuse('connections')
    for (const key of keys) this.#open.set(key, (this.#open.get(key) ?? 0) + 1)
    this.#admitted++
    return null
  }

  leave(address: string): void {
    this.#admitted--
    for (const key of networksOf(address)) {
      const open = this.#open.get(key) ?? 0
      if (open > 1) this.#open.set(key, open - 1)
      else this.#open.delete(key)
    }
  }

  /** Returns the reply for an address that is blocked now; null if it is not. */
  refusal(address: string): Reply | null {
    const why = this.#turnedAwayFor(address)
    return why && refuse(why)
  }

  #turnedAwayFor(address: string): Misdeed | null {
    const nowMs = this.#clock.monotonicMs()
    const standings = networksOf(address).map((key) => this.#standings.get(key))
    return standings.find((standing) => standing && nowMs < standing.untilMs)?.why ?? null
  }

  /** Counts the start of a message. Null allows it; otherwise the reply to close with. */
  beginMessage(address: string): Reply | null {
    const turnedAway = this.refusal(address)
    if (turnedAway) return turnedAway
    return this.#spend(address, 'messages') ? null : refuse('messages')
  }

  /** Counts a misdeed. Resolves when the reply may be sent: to null, or to a reply to close with instead. */
  async answer(address: string, misdeed: Misdeed): Promise<Reply | null> {
    const turnedAway = this.refusal(address)
    if (turnedAway) return turnedAway
    const delayMs = this.note(address, misdeed)
    if (delayMs === 0) return null
    // Many peers that err at once could keep all connections waiting: above their share they are closed.
    if (this.#delayed >= this.#limits.maxConnections * delayedShare) return refuse('delayed')
    this.#delayed++
    await wait(delayMs, null, { ref: false })
    this.#delayed--
    return null
  }

  /** Counts a misdeed. Returns how many milliseconds the reply to it should wait. */
  note(address: string, misdeed: Misdeed): number {
    // A blocked host that goes on, such as by speaking before the banner, must not get its whole network blocked.
    if (this.#turnedAwayFor(address)) return 0
    const max = this.#max[misdeed]
    let level = 0
    for (const [key, standing, weight] of this.#recall(address)) {
      standing[misdeed] += weight
      level = Math.max(level, standing[misdeed])
      if (standing[misdeed] >= max) this.#block(key, standing, misdeed)
    }
    return Math.round(Math.min(maxDelayMs, Math.max(0, level - max * promptShare) * delayStepMs))
  }

  /** Counts one accepted message, not its recipients: one inbox has unlimited tagged addresses. */
  noteTaken(address: string): void {
    for (const [index, key] of networksOf(address).entries()) {
      const standing = this.#standings.get(key)
      if (standing) forgive(standing, weightOf(index))
    }
  }

  /** Counts a connection or message that the limit allows. Refusals do not count, or a busy peer would never get through. */
  #spend(address: string, rate: Rate): boolean {
    const standings = this.#recall(address)
    if (standings.some(([, standing, weight]) => standing[rate] + weight > this.#max[rate])) return false
    for (const [, standing, weight] of standings) standing[rate] += weight
    return true
  }

  #block(key: string, standing: Standing, why: Misdeed): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs >= standing.untilMs)
      this.#log.warn({ peer: key }, `${texts[why].toLowerCase()}: peer refused for ten minutes`)
    standing.untilMs = nowMs + turnedAwayMs
    standing.why = why
  }

  /** Returns the records of the address and its network, reduced for the time passed, and marks both as recently used. */
  #recall(address: string): [key: string, standing: Standing, weight: number][] {
    const nowMs = this.#clock.monotonicMs()
    return networksOf(address).map((key, index) => {
      const standing = this.#standings.get(key) ?? newStanding(nowMs)
      const minutes = (nowMs - standing.atMs) / minuteMs
      for (const rate of ['connections', 'messages'] as const)
        standing[rate] = Math.max(0, standing[rate] - minutes * this.#max[rate])
      forgive(standing, minutes)
      standing.atMs = nowMs
      this.#standings.set(key, standing)
      return [key, standing, weightOf(index)]
    })
  }
}

function newStanding(atMs: number): Standing {
  const untilMs = Number.NEGATIVE_INFINITY
  return { connections: 0, messages: 0, errors: 0, unknown: 0, atMs, untilMs, why: 'errors' }
}

function networksOf(address: string): [own: string, wide: string] {
  return [networkOf(address), wideNetworkOf(address)]
}

function weightOf(index: number): number {
  return index === 0 ? 1 : 1 / networkShare
}

function forgive(standing: Standing, count: number): void {
  standing.errors = Math.max(0, standing.errors - count)
  standing.unknown = Math.max(0, standing.unknown - count)
}

function refuse(reason: Reason): Reply {
  meters.peersRefused.inc({ reason })
  return reply(421, '4.7.0', `${texts[reason]}, try again later`)
}
