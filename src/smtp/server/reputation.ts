// What peers did lately, over sessions, by address and network: their connections, messages, errors and unknown recipients.
import { setTimeout as wait } from 'node:timers/promises'
import { BoundedMap } from '../../base/bounded-map.ts'
import type { Clock } from '../../base/clock.ts'
import { networkOf, wideNetworkOf } from '../../base/ip-address.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { type Reply, reply } from '../reply.ts'
import type { ServerLimits } from './server-options.ts'

/** A network has so many times as much as an address, so that one bad host does not shut out its neighbours. */
const networkShare = 4
const minuteMs = 60_000
const turnedAwayMs = 600_000
/** Of what a peer may do wrong, so much is answered at once: typing errors, and lists that have grown old. */
const promptShare = 0.4
const delayStepMs = 100
const maxDelayMs = 5_000
/** Replies that wait hold their connections: no more than this part of all. */
const delayedShare = 0.25
/** Those that were heard of last are remembered. Measured: 300 bytes each. */
const maxRemembered = 100_000

/** What comes back within a minute; past it peers hear 421 for the moment. */
type Rate = 'connections' | 'messages'
/** What is forgotten one a minute, and with each message that was taken; past it a peer is turned away for ten minutes. */
export type Misdeed = 'errors' | 'unknown'
/** Why a peer was refused, as metrics name it. */
type Reason = Rate | Misdeed | 'delayed'

interface Standing extends Record<Rate | Misdeed, number> {
  atMs: number
  /** Turned away until then, and why. */
  untilMs: number
  why: Misdeed
}

const texts: Record<Reason, string> = {
  connections: 'Too many connections',
  messages: 'Too many messages',
  errors: 'Too many errors',
  unknown: 'Too many unknown recipients',
  delayed: 'Too many errors',
}

/**
 * Counts what peers do, whatever connections they do it over, for an address and, a quarter each, for its network. A
 * harvester that asks for name after name over many connections, and who tries command after command, is answered ever
 * later, and then for ten minutes not at all; whoever sends mail that is taken earns as many errors. Peers who are trusted
 * are not to be counted at all.
 */
export class Reputation {
  readonly #limits: ServerLimits
  readonly #clock: Clock
  readonly #log: Log
  readonly #max: Record<Rate | Misdeed, number>
  readonly #standings = new BoundedMap<string, Standing>(maxRemembered)
  readonly #open = new Map<string, number>()
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

  /** A connection: null admits it, and is to be followed by one `leave`; otherwise the reply to close with. */
  admit(address: string): Reply | null {
    const keys = networksOf(address)
    const max = this.#limits.maxConnectionsPerAddress
    const isFull = keys.some(
      (key, index) => (this.#open.get(key) ?? 0) >= max * (index === 0 ? 1 : networkShare),
    )
    if (isFull || !this.#spend(address, 'connections')) return refuse('connections')
    for (const key of keys) this.#open.set(key, (this.#open.get(key) ?? 0) + 1)
    return null
  }

  leave(address: string): void {
    for (const key of networksOf(address)) {
      const open = this.#open.get(key) ?? 0
      if (open > 1) this.#open.set(key, open - 1)
      else this.#open.delete(key)
    }
  }

  /** The reply with which an address is turned away for now; null for those who may go on. */
  refusal(address: string): Reply | null {
    const why = this.#turnedAwayFor(address)
    return why && refuse(why)
  }

  #turnedAwayFor(address: string): Misdeed | null {
    const nowMs = this.#clock.monotonicMs()
    const standings = networksOf(address).map((key) => this.#standings.get(key))
    return standings.find((standing) => standing && nowMs < standing.untilMs)?.why ?? null
  }

  /** A message begins: null lets it, otherwise the reply to close with. */
  beginMessage(address: string): Reply | null {
    const turnedAway = this.refusal(address)
    if (turnedAway) return turnedAway
    return this.#spend(address, 'messages') ? null : refuse('messages')
  }

  /** A misdeed: counted, and resolves once the reply to it may leave; not with null, but with the reply to close with instead. */
  async answer(address: string, misdeed: Misdeed): Promise<Reply | null> {
    const turnedAway = this.refusal(address)
    if (turnedAway) return turnedAway
    const delayMs = this.note(address, misdeed)
    if (delayMs === 0) return null
    // Many peers that err at once would hold all connections in waiting: past their share they are cut.
    if (this.#delayed >= this.#limits.maxConnections * delayedShare) return refuse('delayed')
    this.#delayed++
    await wait(delayMs, null, { ref: false })
    this.#delayed--
    return null
  }

  /** A misdeed is counted; returns for how long the reply to it should wait. */
  note(address: string, misdeed: Misdeed): number {
    // Against one host that goes on until all of its network is turned away, as by speaking before its turn.
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

  /** A message was taken: as one message, whatever its recipients, for the tags of one inbox are without number. */
  noteTaken(address: string): void {
    for (const [index, key] of networksOf(address).entries()) {
      const standing = this.#standings.get(key)
      if (standing) forgive(standing, weightOf(index))
    }
  }

  /** Whether there was room for one more of it; what is refused does not count, or a busy peer would never get through. */
  #spend(address: string, rate: Rate): boolean {
    const standings = this.#recall(address)
    if (standings.some(([, standing, weight]) => standing[rate] + weight > this.#max[rate])) return false
    for (const [, standing, weight] of standings) standing[rate] += weight
    return true
  }

  #block(key: string, standing: Standing, why: Misdeed): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs >= standing.untilMs)
      this.#log.warn({ peer: key }, `${texts[why].toLowerCase()}: this peer is turned away for ten minutes`)
    standing.untilMs = nowMs + turnedAwayMs
    standing.why = why
  }

  /** What is known of the address and of its network, less what is over by now; they are the last to be forgotten. */
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
