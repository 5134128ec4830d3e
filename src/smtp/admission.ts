// Who may connect: bounds on open connections, in all and per address, and on new ones per minute.
import type { Clock } from '../base/clock.ts'
import { networkOf } from './peer-address.ts'
import { type Reply, reply } from './reply.ts'
import type { ServerLimits } from './server-options.ts'

const windowMs = 60_000
const maxRemembered = 100_000
const tooMany = reply(421, '4.7.0', 'Too many connections, try again later')

/** Counts connections. Every `admit` that answers null must be followed by one `leave`. */
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
    const network = networkOf(address)
    const open = this.#open.get(network) ?? 0
    const recent = this.#countRecent(network)
    const { maxConnectionsPerAddress, connectionsPerMinutePerAddress } = this.#limits
    if (open >= maxConnectionsPerAddress || recent > connectionsPerMinutePerAddress) return tooMany
    this.#open.set(network, open + 1)
    return null
  }

  leave(address: string): void {
    const network = networkOf(address)
    const open = this.#open.get(network) ?? 0
    if (open > 1) this.#open.set(network, open - 1)
    else this.#open.delete(network)
  }

  #countRecent(network: string): number {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#windowStartMs >= windowMs || this.#recent.size >= maxRemembered) {
      this.#recent = new Map()
      this.#windowStartMs = nowMs
    }
    const count = (this.#recent.get(network) ?? 0) + 1
    this.#recent.set(network, count)
    return count
  }
}
