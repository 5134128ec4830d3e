// The limits that the supervisor counts for all workers: on SMTP peers, on HTTP connections and on look-ups.
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { OwnLookupMinutes } from '../../dns/hops-in-time.ts'
import { OwnNetworkCounts } from '../../http/connections.ts'
import { type SmtpDoor, smtpDoors } from '../../smtp/server/peers.ts'
import { Reputation } from '../../smtp/server/reputation.ts'
import { defaultServerLimits } from '../../smtp/server/server-options.ts'
import type { LimitCalls } from './calls.ts'

export class GroupLimits {
  readonly #peers: Record<SmtpDoor, Reputation>
  readonly #networks = new OwnNetworkCounts()
  readonly #lookups: OwnLookupMinutes

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    const count = () => new Reputation(defaultServerLimits, { clock, log })
    this.#peers = { mx: count(), submission: count() }
    this.#lookups = new OwnLookupMinutes(clock)
  }

  /** Returns the calls of one worker. `release` gives back the connections of a worker that has ended. */
  forWorker(): { calls: LimitCalls; release(): void } {
    const peers = { mx: new Held(), submission: new Held() }
    const networks = new Held()
    const calls: LimitCalls = {
      admitPeer: (door, address) => {
        const refusal = this.#peers[door].admit(address)
        if (refusal === null) peers[door].add(address)
        return refusal
      },
      leavePeer: (door, address) => {
        peers[door].remove(address)
        this.#peers[door].leave(address)
      },
      refusePeer: (door, address) => this.#peers[door].refusal(address),
      beginMessage: (door, address) => this.#peers[door].beginMessage(address),
      answerPeer: (door, address, misdeed) => this.#peers[door].answer(address, misdeed),
      notePeer: (door, address, misdeed) => void this.#peers[door].note(address, misdeed),
      noteTaken: (door, address) => this.#peers[door].noteTaken(address),
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
      for (const door of smtpDoors) for (const address of peers[door].all()) this.#peers[door].leave(address)
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
