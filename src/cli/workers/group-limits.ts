// The limits that the supervisor counts for all workers: on SMTP peers, on HTTP connections and on look-ups.
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { OwnLookupMinutes } from '../../dns/hops-in-time.ts'
import { OwnNetworkCounts } from '../../http/connections.ts'
import { Reputation } from '../../smtp/server/reputation.ts'
import { defaultServerLimits } from '../../smtp/server/server-options.ts'
import type { LimitCalls } from './calls.ts'

export class GroupLimits {
  readonly #peers: Reputation
  readonly #networks = new OwnNetworkCounts()
  readonly #lookups: OwnLookupMinutes

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    this.#peers = new Reputation(defaultServerLimits, { clock, log })
    this.#lookups = new OwnLookupMinutes(clock)
  }

  /** Returns the calls of one worker. `release` gives back the connections of a worker that has ended. */
  forWorker(): { calls: LimitCalls; release(): void } {
    const [peers, networks] = [new Held(), new Held()]
    const calls: LimitCalls = {
      admitPeer: (address) => {
        const refusal = this.#peers.admit(address)
        if (refusal === null) peers.add(address)
        return refusal
      },
      leavePeer: (address) => {
        peers.remove(address)
        this.#peers.leave(address)
      },
      refusePeer: (address) => this.#peers.refusal(address),
      beginMessage: (address) => this.#peers.beginMessage(address),
      answerPeer: (address, misdeed) => this.#peers.answer(address, misdeed),
      notePeer: (address, misdeed) => void this.#peers.note(address, misdeed),
      noteTaken: (address) => this.#peers.noteTaken(address),
      takeConnection: (network) => {
        const isTaken = this.#networks.take(network)
        if (isTaken) networks.add(network)
        return isTaken
      },
      giveConnection: (network) => {
        networks.remove(network)
        this.#networks.give(network)
      },
      takeLookups: (asker, count) => this.#lookups.take(asker, count),
    }
    const release = () => {
      for (const address of peers.all()) this.#peers.leave(address)
      for (const network of networks.all()) this.#networks.give(network)
    }
    return { calls, release }
  }
}

/** The open connections of one worker, by address or network. */
class Held {
  readonly #counts = new Map<string, number>()

  add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }

  remove(key: string): void {
    const left = (this.#counts.get(key) ?? 0) - 1
    if (left > 0) this.#counts.set(key, left)
    else this.#counts.delete(key)
  }

  /** Each key as often as it is held. */
  all(): string[] {
    return [...this.#counts].flatMap(([key, count]) => Array.from({ length: count }, () => key))
  }
}
