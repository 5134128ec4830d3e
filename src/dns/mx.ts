// Finds the mail servers of a domain, in the order in which they are to be tried (RFC 5321 5.1).
import { Clock } from '../base/clock.ts'
import type { DnsAnswer, DnsRecords, Resolver } from './resolver.ts'

export interface Host {
  name: string
  preference: number
  /** In the order to try: IPv4 and IPv6 by turns, IPv4 first. Never empty. */
  addresses: readonly string[]
}

export type Hops =
  | { status: 'ok'; hosts: Host[] }
  | { status: 'null_mx' }
  | { status: 'domain_not_found' }
  /** There are records, but none leads to an address that may be reached. */
  | { status: 'no_address'; reason: string }
  | { status: 'temporary'; reason: string }

export interface HopFinderOptions {
  resolver: Resolver
  /** Refuses loopback, private and our own addresses; see `isPublicUnicast`. */
  isAllowed: (ip: string) => boolean
  clock?: Clock
  /** From 0 to 1; shuffles hosts of equal preference. */
  random?: () => number
  /** For all the questions about one domain together. */
  deadlineMs?: number
  /** Domains remembered. */
  maxCached?: number
}

const maxHosts = 20
const maxAddresses = 40
// The MX record's own TTL is not to be had from c-ares, so that of its addresses counts, within these bounds.
const longestCacheMs = 300_000
const noneFoundCacheMs = 60_000

interface Found {
  hops: Hops
  cacheMs: number
}

/** Finds hops, and remembers them for as long as their addresses' TTL says, five minutes at most. */
export class HopFinder {
  readonly #options: Required<HopFinderOptions>
  readonly #cache = new Map<string, { hops: Hops; untilMs: number }>()
  readonly #asking = new Map<string, Promise<Hops>>()

  constructor(options: HopFinderOptions) {
    this.#options = {
      clock: new Clock(),
      random: Math.random,
      deadlineMs: 30_000,
      maxCached: 10_000,
      ...options,
    }
  }

  /** The hops of `domain` (A-labels), hosts of equal preference in a new order each time. Never rejects. */
  async find(domain: string): Promise<Hops> {
    const hops = this.recall(domain) ?? (await this.#askOnce(cacheKey(domain)))
    return hops.status === 'ok' ? { status: 'ok', hosts: shuffle(hops.hosts, this.#options.random) } : hops
  }

  /** What is remembered of `domain`, without asking. */
  recall(domain: string): Hops | null {
    const cached = this.#cache.get(cacheKey(domain))
    return cached && cached.untilMs > this.#options.clock.monotonicMs() ? cached.hops : null
  }

  /** Who asks while the same question is under way gets the same answer. */
  #askOnce(key: string): Promise<Hops> {
    let asking = this.#asking.get(key)
    if (!asking) {
      asking = this.#ask(key).finally(() => this.#asking.delete(key))
      this.#asking.set(key, asking)
    }
    return asking
  }

  async #ask(key: string): Promise<Hops> {
    const { hops, cacheMs } = await within(this.#options.deadlineMs, lookUpHops(this.#options, key))
    this.#remember(key, hops, cacheMs)
    return hops
  }

  #remember(key: string, hops: Hops, cacheMs: number): void {
    this.#cache.delete(key)
    if (cacheMs === 0) return
    // A Map keeps the order of insertion: the first key is the oldest.
    if (this.#cache.size >= this.#options.maxCached) this.#cache.delete(this.#cache.keys().next().value!)
    this.#cache.set(key, { hops, untilMs: this.#options.clock.monotonicMs() + cacheMs })
  }
}

function cacheKey(domain: string): string {
  return domain.toLowerCase().replace(/\.$/, '')
}

async function within(deadlineMs: number, finding: Promise<Found>): Promise<Found> {
  const { promise: late, resolve } = Promise.withResolvers<Found>()
  const timer = setTimeout(() => resolve(temporary('DNS took too long')), deadlineMs)
  try {
    return await Promise.race([finding, late])
  } finally {
    clearTimeout(timer)
  }
}

async function lookUpHops(options: HopFinderOptions, domain: string): Promise<Found> {
  const answer = await options.resolver.resolve('MX', domain)
  if (answer.status === 'temporary') return temporary(answer.reason)
  if (answer.status === 'nxdomain') return nothing({ status: 'domain_not_found' })
  // RFC 5321 5.1: without MX records the domain is its own mail server, with preference 0.
  if (answer.status === 'nodata') return findHosts(options, [{ exchange: domain, preference: 0 }])
  const named = answer.records.filter(({ exchange }) => exchange !== '')
  // RFC 7505 3: a single MX of "." says that the domain takes no mail.
  if (named.length === 0) return nothing({ status: 'null_mx' })
  return findHosts(options, named.sort((one, other) => one.preference - other.preference).slice(0, maxHosts))
}

async function findHosts(options: HopFinderOptions, exchanges: DnsRecords['MX'][]): Promise<Found> {
  const looked = await Promise.all(
    exchanges.map((exchange) => findAddresses(options.resolver, exchange.exchange)),
  )
  const hosts: Host[] = []
  let room = maxAddresses
  let ttlSeconds = Number.POSITIVE_INFINITY
  for (const [index, { exchange, preference }] of exchanges.entries()) {
    const allowed = looked[index]!.records.filter(({ address }) => options.isAllowed(address)).slice(0, room)
    if (allowed.length === 0) continue
    room -= allowed.length
    ttlSeconds = Math.min(ttlSeconds, ...allowed.map((record) => record.ttlSeconds))
    hosts.push({ name: exchange, preference, addresses: allowed.map(({ address }) => address) })
  }
  const unknown = looked.find(({ temporaryReason }) => temporaryReason !== null)
  // RFC 5321 5.1: hosts that can be found are tried, though others cannot be looked up now.
  if (hosts.length > 0) {
    const cacheMs = unknown ? 0 : Math.min(ttlSeconds * 1000, longestCacheMs)
    return { hops: { status: 'ok', hosts }, cacheMs }
  }
  if (unknown) return temporary(unknown.temporaryReason!)
  const refused = looked.some(({ records }) => records.length > 0)
  const reason = refused ? 'its mail servers have no public address' : 'its mail servers have no address'
  return nothing({ status: 'no_address', reason })
}

async function findAddresses(resolver: Resolver, name: string) {
  const answers = await Promise.all([resolver.resolve('A', name), resolver.resolve('AAAA', name)])
  const [four, six] = answers.map(recordsOf) as [DnsRecords['A'][], DnsRecords['A'][]]
  const failed = answers.find((answer) => answer.status === 'temporary')
  // IPv4 first: more hosts reach it, and more of them have a name and a history there.
  const records = Array.from({ length: Math.max(four.length, six.length) }, (_, index) => [
    four[index],
    six[index],
  ])
  return {
    records: records.flat().filter((record) => record !== undefined),
    temporaryReason: failed ? failed.reason : null,
  }
}

function recordsOf(answer: DnsAnswer<DnsRecords['A']>): DnsRecords['A'][] {
  return answer.status === 'ok' ? answer.records : []
}

function temporary(reason: string): Found {
  return { hops: { status: 'temporary', reason }, cacheMs: 0 }
}

function nothing(hops: Hops): Found {
  return { hops, cacheMs: noneFoundCacheMs }
}

// RFC 5321 5.1: hosts of equal preference are tried in random order, to spread the load.
function shuffle(hosts: readonly Host[], random: () => number): Host[] {
  return hosts
    .map((host) => ({ host, lot: random() }))
    .sort((one, other) => one.host.preference - other.host.preference || one.lot - other.lot)
    .map(({ host }) => host)
}
