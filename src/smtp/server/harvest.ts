// Who guesses names: unknown recipients, counted over sessions by address and network, answered later and later, then not at all.
import { BoundedMap } from '../../base/bounded-map.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { type Reply, reply } from '../reply.ts'
import { networksOf } from './peer-address.ts'

/** What one address may name, and how many times as much its network, before it is turned away. */
const maxUnknown = 50
const networkShare = 4
/** So many are answered at once: typing errors, and lists that have grown old. */
const prompt = 20
const delayStepMs = 100
const maxDelayMs = 5_000
/** One is forgotten in this time, or with each message that was taken. */
const forgetMs = 60_000
const turnedAwayMs = 600_000
/** Those that were heard of last are remembered. */
const maxRemembered = 50_000
const turnedAway = reply(421, '4.7.0', 'Too many unknown recipients, try again later')

interface Guesser {
  unknown: number
  atMs: number
  untilMs: number
}

/**
 * Harvesters ask for name after name over many connections and note which are taken. After 50 unknown ones an address
 * learns nothing more for ten minutes, and no more than one a minute after that; whoever sends mail that is taken earns as
 * many errors.
 */
export class Harvest {
  readonly #clock: Clock
  readonly #log: Log
  readonly #guessers = new BoundedMap<string, Guesser>(maxRemembered)

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** The reply with which an address is turned away for now; null for those who may go on. */
  refusal(address: string): Reply | null {
    const nowMs = this.#clock.monotonicMs()
    const isTurnedAway = networksOf(address).some(
      (key) => nowMs < (this.#guessers.get(key)?.untilMs ?? nowMs),
    )
    return isTurnedAway ? turnedAway : null
  }

  /** An unknown recipient was named; returns for how long the reply to it waits. */
  noteUnknown(address: string): number {
    const [own, network] = networksOf(address).map((key) => this.#recall(key)) as [Guesser, Guesser]
    own.unknown++
    network.unknown += 1 / networkShare
    for (const [index, guesser] of [own, network].entries())
      if (guesser.unknown >= maxUnknown) this.#block(guesser, networksOf(address)[index]!)
    const unknown = Math.max(own.unknown, network.unknown)
    return Math.min(maxDelayMs, Math.max(0, unknown - prompt) * delayStepMs)
  }

  /** A message was taken: as one message, whatever its recipients, for the tags of one inbox are without number. */
  noteTaken(address: string): void {
    for (const key of networksOf(address)) {
      const guesser = this.#guessers.get(key)
      if (guesser) guesser.unknown = Math.max(0, guesser.unknown - 1)
    }
  }

  #block(guesser: Guesser, key: string): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs >= guesser.untilMs)
      this.#log.warn({ peer: key }, 'too many unknown recipients: this peer is turned away for ten minutes')
    guesser.untilMs = nowMs + turnedAwayMs
  }

  /** What is known of it, less what it has lived down; it is the last to be forgotten. */
  #recall(key: string): Guesser {
    const nowMs = this.#clock.monotonicMs()
    const guesser = this.#guessers.get(key) ?? { unknown: 0, atMs: nowMs, untilMs: Number.NEGATIVE_INFINITY }
    guesser.unknown = Math.max(0, guesser.unknown - (nowMs - guesser.atMs) / forgetMs)
    guesser.atMs = nowMs
    this.#guessers.set(key, guesser)
    return guesser
  }
}
