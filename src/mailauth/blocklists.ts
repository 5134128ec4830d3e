// Asks the DNS block lists that the operator chose about a peer's address, all at once and under one deadline.
import ipaddr from 'ipaddr.js'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'
import { within } from '../base/within.ts'
import { isPublicUnicast } from '../dns/public-address.ts'
import type { Lookup } from './lookup.ts'

export interface Blocklist {
  /** The domain name below which the list publishes reversed addresses. */
  zone: string
  /** The action if the list has a peer: refuse its mail, or accept it with a note. */
  action: 'refuse' | 'tell'
}

/** A list's answer about an address. `fault`: it gave no usable answer, and the reason. */
export type ListAnswer = { zone: string } & (
  | { outcome: 'listed' | 'not_listed' }
  | { outcome: 'fault'; reason: string }
)

const deadlineMs = 3_000
/** After this number of faults in a row, a list is skipped for a minute. Otherwise each sender would wait for it. */
const maxFaults = 5
const restMs = 60_000
const logEveryMs = 600_000

/**
 * Asks lists about an address, all at once. Returns an answer for each zone, in order. A list that has an address which
 * no list may have is not believed. `ip` is the literal of an IPv4 or IPv6 address. Never rejects.
 */
export async function checkLists(
  lookup: Lookup,
  ip: string,
  zones: readonly string[],
): Promise<ListAnswer[]> {
  return await Promise.all(zones.map((zone) => checkList(lookup, ip, zone)))
}

async function checkList(lookup: Lookup, ip: string, zone: string): Promise<ListAnswer> {
  const answer = await askList(lookup, ip, zone)
  if (answer.outcome !== 'listed') return answer
  // RFC 5782 5: no list has 127.0.0.1, or ::FFFF:7F00:1. A list that does lists everybody, as abandoned lists do.
  const control = await askList(lookup, ip.includes(':') ? '::ffff:7f00:1' : '127.0.0.1', zone)
  if (control.outcome === 'listed') return { zone, outcome: 'fault', reason: 'it lists everybody' }
  return control.outcome === 'fault' ? control : answer
}

async function askList(lookup: Lookup, ip: string, zone: string): Promise<ListAnswer> {
  const answer = await lookup('A', `${reversed(ip)}.${zone}`)
  if (answer.status === 'temporary') return { zone, outcome: 'fault', reason: answer.reason }
  if (answer.status !== 'ok') return { zone, outcome: 'not_listed' }
  const addresses = answer.records.map(({ address }) => address)
  if (addresses.some(isListing)) return { zone, outcome: 'listed' }
  return { zone, outcome: 'fault', reason: `it answered ${addresses[0]}, which is no listing` }
}

/** RFC 5782 2.1 and 2.4: the bytes of IPv4 or the half-bytes of IPv6, from the last to the first. */
function reversed(ip: string): string {
  const bytes = ipaddr.parse(ip).toByteArray()
  const labels = bytes.length === 4 ? bytes : [...Buffer.from(bytes).toString('hex')]
  return labels.toReversed().join('.')
}

function isListing(address: string): boolean {
  // QUIRK: 127.255.255.x means that the query was refused: too many, or by a public resolver (Spamhaus, return codes).
  // RFC 5782 2.3: a listing is an address of 127.0.0.0/8. Any other address means that the domain has a new owner.
  return address.startsWith('127.') && !address.startsWith('127.255.255.')
}

/**
 * The zone as peers, customers and logs may see it. QUIRK: some lists put their subscribers' keys into the names to ask
 * for (Spamhaus, Data Query Service).
 */
export function publicName(zone: string): string {
  return zone.replace(/^(?:[a-z0-9]{20,}\.)+(?=[^.]+\.)/, '')
}

interface ZoneState {
  faults: number
  restUntilMs: number
  loggedMs: number
}

export interface BlocklistsOptions {
  lookup: Lookup
  lists: readonly Blocklist[]
  clock: Clock
  log: Log
  deadlineMs?: number
}

/** The lists of a node. Remembers which of them do not answer. */
export class Blocklists {
  readonly #options: Required<BlocklistsOptions>
  readonly #states = new Map<string, ZoneState>()

  constructor(options: BlocklistsOptions) {
    this.#options = { deadlineMs, ...options }
    for (const { zone } of options.lists)
      this.#states.set(zone, { faults: 0, restUntilMs: 0, loggedMs: Number.NEGATIVE_INFINITY })
  }

  /**
   * The public names of the lists that have the address, and the first of them that refuses. Answers within 3 s, and
   * ignores lists that have not answered by then. Asks no list about an address that is not public. Never rejects.
   */
  async check(address: string): Promise<{ listedBy: string[]; refusedBy: string | null }> {
    const { lookup, lists } = this.#options
    if (!isPublicUnicast(address)) return { listedBy: [], refusedBy: null }
    const asked = lists.filter(({ zone }) => this.#mayAsk(zone))
    const answers = await Promise.all(
      asked.map(({ zone }) => this.#inTime(zone, checkLists(lookup, address, [zone]))),
    )
    const listing = asked.filter((_, index) => answers[index]!.outcome === 'listed')
    const refusing = listing.find(({ action }) => action === 'refuse')
    return {
      listedBy: listing.map(({ zone }) => publicName(zone)),
      refusedBy: refusing ? publicName(refusing.zone) : null,
    }
  }

  async #inTime(zone: string, checked: Promise<ListAnswer[]>): Promise<ListAnswer> {
    const late = (): ListAnswer[] => [{ zone, outcome: 'fault', reason: 'it did not answer in time' }]
    const [answer] = await within(this.#options.deadlineMs, checked, late)
    meters.listLookups.inc({ outcome: answer!.outcome })
    this.#note(answer!)
    return answer!
  }

  /**
   * Whether the list may be asked now. After `maxFaults` faults in a row, only one peer a minute asks it. The others
   * skip it.
   */
  #mayAsk(zone: string): boolean {
    const state = this.#states.get(zone)!
    const nowMs = this.#options.clock.monotonicMs()
    if (state.faults < maxFaults) return true
    if (nowMs < state.restUntilMs) return false
    state.restUntilMs = nowMs + restMs
    return true
  }

  #note(answer: ListAnswer): void {
    const state = this.#states.get(answer.zone)!
    if (answer.outcome !== 'fault') {
      state.faults = 0
      return
    }
    const nowMs = this.#options.clock.monotonicMs()
    if (++state.faults === maxFaults) state.restUntilMs = nowMs + restMs
    if (nowMs - state.loggedMs < logEveryMs) return
    state.loggedMs = nowMs
    const fields = { list: publicName(answer.zone), reason: answer.reason }
    this.#options.log.warn(fields, 'block list gave no valid answer: it is ignored until it does')
  }
}
