// Who may connect: bounds on open connections and on new ones per minute, per address and per network.
import type { Clock } from '../../base/clock.ts'
import { type Reply, reply } from '../reply.ts'
import { networksOf } from './peer-address.ts'
import type { ServerLimits } from './server-options.ts'

const windowMs = 60_000
const maxRemembered = 100_000
/** A network has so many times as much as an address. */
const networkShare = 4
const tooMany = reply(421, '4.7.0', 'Too many connections, try again later')

/** Counts connections. Every `admit` that returns null must be followed by one `leave`. */
export class Admission {
  readonly #limits: ServerLimits
  readonly #clock: Clock
  readonly #open = new Map<string, number>()
  #recent = new Map<string, number>()
  #windowStartMs = 0

  constructor(limits: ServerLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  /** Null admits the address; otherwise the reply to close with. */
  admit(address: string): Reply | null {
    const { maxConnectionsPerAddress, connectionsPerMinutePerAddress } = this.#limits
    const counts = networksOf(address).map((key, index) => ({
      open: this.#open.get(key) ?? 0,
      recent: this.#countRecent(key),
      // A share of all for a network too, or a few of its hosts hold the whole listener.
      times: index === 0 ? 1 : networkShare,
    }))
    const isOver = counts.some(
      ({ open, recent, times }) =>
        open >= maxConnectionsPerAddress * times || recent > connectionsPerMinutePerAddress * times,
    )
    if (isOver) return tooMany
    for (const [index, key] of networksOf(address).entries()) this.#open.set(key, counts[index]!.open + 1)
    return null
  }

  leave(address: string): void {
    for (const key of networksOf(address)) {
      const open = this.#open.get(key) ?? 0
      if (open > 1) this.#open.set(key, open - 1)
      else this.#open.delete(key)
    }
  }

  #countRecent(key: string): number {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#windowStartMs >= windowMs || this.#recent.size >= maxRemembered) {
      this.#recent = new Map()
      this.#windowStartMs = nowMs
    }
    const count = (this.#recent.get(key) ?? 0) + 1
    this.#recent.set(key, count)
    return count
  }
}
