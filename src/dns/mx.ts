// Finds the mail servers of a domain, in the order in which to try them (RFC 5321 5.1).
import { BoundedMap } from '../base/bounded-map.ts'
import { Clock } from '../base/clock.ts'
import { within } from '../base/within.ts'
import { findAddressRecords, findBases } from './host-addresses.ts'
import type { Asking, DnsRecords, Resolver } from './resolver.ts'

export interface Host {
  name: string
  preference: number
  /** In the order to try them: IPv4 and IPv6 alternate, IPv4 first. Never empty. */
  addresses: readonly string[]
  /** Null if DNSSEC does not protect the way from the domain to this host, so that DANE does not apply. */
  dane: DaneNames | null
}

export interface DaneNames {
  /** Candidates for the name that has the TLSA records, in the order to try them. Never empty. */
  bases: readonly string[]
  /** Further names that a certificate may have if a trust anchor issued it. */
  names: readonly string[]
}

/** How far a look-up came with the mail servers of a domain. Absent if it came to none of them. */
export interface Progress {
  /** Names whose addresses were looked up, and are all in the result. */
  searched: readonly string[]
  /** How many mail servers have addresses that are not in the result yet. */
  left: number
}

export type Hops =
  | ({ status: 'ok'; hosts: Host[] } & Partial<Progress>)
  | { status: 'null_mx' }
  | { status: 'domain_not_found' }
  /** There are records, but none leads to an allowed address. */
  | { status: 'no_address'; reason: string }
  /** This deployment is the best of the mail servers that could be used. */
  | { status: 'mail_loop'; reason: string }
  | ({ status: 'temporary'; reason: string } & Partial<Progress>)

export interface HopFinderOptions {
  resolver: Pick<Resolver, 'resolve'>
  /** Refuses loopback, private and our own addresses. See `isPublicUnicast`. */
  isAllowed: (ip: string) => boolean
  /** Whether a mail server is this deployment itself. See `OwnHost`. */
  isOwn?: (name: string, addresses: readonly string[]) => Promise<boolean>
  /** Queries that the look-up of one domain may send. */
  maxQueries?: number
  /** How long to wait for the answer to one query. The default is the resolver's timeout. */
  timeoutMs?: number
  clock?: Clock
  /** Returns numbers from 0 to 1. Shuffles hosts of equal preference. */
  random?: () => number
  /** Time limit for all questions about one domain together. */
  deadlineMs?: number
  /** Domains kept in the cache. */
  maxCached?: number
}

/**
 * Two names are four questions. An organization opens up to 50 queues at once (`worker/route-choice.ts`). Their look-ups
 * fit into its share of the resolver, so a large domain never waits for the organization's dead ones.
 */
const namesAtOnce = 2
const maxAddresses = 40
/** After this time, mail servers that were found do not wait for others: sooner if DNS left a question unanswered. */
const patienceMs = { unanswered: 1_000, answered: 10_000 }
// Upper limits. Below them the shortest TTL of the MX and the address records counts.
const maxCacheMs = 300_000
const noneFoundCacheMs = 60_000

interface Found {
  hops: Hops
  cacheMs: number
}

type Bounded = Asking & Required<Pick<Asking, 'signal' | 'queries'>>

/** The asker of a look-up, and the signal that ends its wait. */
export interface HopAsking {
  asker: string
  signal?: AbortSignal
  /** Names and addresses of mail servers to leave out, so that the look-up continues an earlier one. */
  passed?: ReadonlySet<string>
}

const none: ReadonlySet<string> = new Set()

/** A look-up under way. It ends at its deadline, or when no caller waits for it any more. */
interface Lookup {
  found: Promise<Hops>
  ending: AbortController
  waiting: number
}

type Options = Required<Omit<HopFinderOptions, 'timeoutMs'>> & Pick<HopFinderOptions, 'timeoutMs'>

/** Finds hops, and remembers them for their TTL, but at most five minutes. */
export class HopFinder {
  readonly #options: Options
  readonly #cache: BoundedMap<string, { hops: Hops; untilMs: number }>
  readonly #lookups = new Map<string, Lookup>()

  constructor(options: HopFinderOptions) {
    this.#options = {
      clock: new Clock(),
      isOwn: async () => false,
      maxQueries: 40,
      random: Math.random,
      deadlineMs: 30_000,
      maxCached: 10_000,
      ...options,
    }
    this.#cache = new BoundedMap(this.#options.maxCached)
  }

  /**
   * The hops of `domain` (A-labels). Each call shuffles hosts of equal preference. If every mail server was passed, the
   * look-up starts over. A cached result that is complete may contain passed ones. Never rejects.
   */
  async find(domain: string, asking: HopAsking = { asker: '' }): Promise<Hops> {
    const cached = this.recall(domain)
    const goesOn = (asking.passed ?? none).size > 0 && cached?.status === 'ok' && cached.left !== 0
    const hops = cached && !goesOn ? cached : await this.#join(cacheKey(domain), asking)
    return hops.status === 'ok' ? { ...hops, hosts: shuffle(hops.hosts, this.#options.random) } : hops
  }

  /** The cached hops of `domain`, without a question. */
  recall(domain: string): Hops | null {
    const cached = this.#cache.get(cacheKey(domain))
    return cached && cached.untilMs > this.#options.clock.monotonicMs() ? cached.hops : null
  }

  /** Joins a look-up of the domain by the same asker. Another asker's look-up may be waiting for that asker's share. */
  async #join(key: string, { asker, signal, passed = none }: HopAsking): Promise<Hops> {
    if (signal?.aborted) return tookTooLong.hops
    const id = [key, asker, ...passed].join(' ')
    const lookup = this.#lookups.get(id) ?? this.#begin(id, key, { asker, passed })
    const { promise: givenUp, resolve } = Promise.withResolvers<Hops>()
    const giveUp = () => {
      resolve(tookTooLong.hops)
      if (--lookup.waiting === 0) lookup.ending.abort()
    }
    lookup.waiting++
    signal?.addEventListener('abort', giveUp, { once: true })
    const hops = await Promise.race([lookup.found, givenUp])
    signal?.removeEventListener('abort', giveUp)
    return hops
  }

  #begin(id: string, domain: string, asking: Required<Omit<HopAsking, 'signal'>>): Lookup {
    const ending = new AbortController()
    const found = this.#ask(domain, asking, ending).finally(() => this.#lookups.delete(id))
    const lookup = { found, ending, waiting: 0 }
    this.#lookups.set(id, lookup)
    return lookup
  }

  async #ask(
    domain: string,
    asking: Required<Omit<HopAsking, 'signal'>>,
    ending: AbortController,
  ): Promise<Hops> {
    const finding = resolveHops(this.#options, domain, { ...asking, signal: ending.signal })
    const { hops, cacheMs } = await within(this.#options.deadlineMs, finding, () => {
      ending.abort()
      return tookTooLong
    })
    if (cacheMs > 0 && asking.passed.size === 0)
      this.#cache.set(domain, { hops, untilMs: this.#options.clock.monotonicMs() + cacheMs })
    return hops
  }
}

function cacheKey(domain: string): string {
  return domain.toLowerCase().replace(/\.$/, '')
}

async function resolveHops(
  options: Options,
  domain: string,
  { asker, signal, passed }: Required<HopAsking>,
): Promise<Found> {
  const { maxQueries, timeoutMs } = options
  const asking: Bounded = { asker, signal, queries: { left: maxQueries }, ...(timeoutMs && { timeoutMs }) }
  const answer = await options.resolver.resolve('MX', domain, asking)
  if (answer.status === 'temporary') return temporary(answer.reason)
  if (answer.status === 'nxdomain') return nothing({ status: 'domain_not_found' }, answer.ttlSeconds)
  // RFC 5321 5.1: without MX records the domain is its own mail server, with preference 0.
  const records = answer.status === 'nodata' ? [{ exchange: domain, preference: 0 }] : answer.records
  const named = records.filter(({ exchange }) => exchange !== '')
  // RFC 7505 3: a single MX of "." means that the domain accepts no mail.
  if (named.length === 0) return nothing({ status: 'null_mx' }, answer.ttlSeconds)
  const search = beginSearch(answer.ttlSeconds, passed)
  if (answer.isAuthenticated) search.names = [domain]
  if (answer.isAuthenticated && answer.status === 'ok' && answer.canonicalName !== undefined)
    search.names.push(answer.canonicalName)
  return await findHosts(options, named, search, asking)
}

/** The results for the mail servers looked up so far. */
interface Search {
  hosts: Host[]
  /** Names and addresses to leave out. */
  passed: ReadonlySet<string>
  searched: string[]
  ttlSeconds: number
  /** TTL of the result if no server has an allowed address. */
  noneTtlSeconds: number
  /** Why a server could not be looked up now. Null if all could. */
  unknown: string | null
  /** A server has only addresses that must not be reached. */
  isRefused: boolean
  /** The best preference at which this deployment is a server. Infinity if it is none. */
  ownPreference: number
  /** Number of addresses that may still be added. */
  room: number
  /** The domain, and the name that it is an alias for. Empty if DNSSEC does not prove its mail servers. */
  names: string[]
}

function beginSearch(ttlSeconds = Number.POSITIVE_INFINITY, passed: ReadonlySet<string>): Search {
  const times = { ttlSeconds, noneTtlSeconds: ttlSeconds }
  const nothingYet = { hosts: [], searched: [], unknown: null, isRefused: false, names: [] }
  return { ...times, ...nothingYet, passed, ownPreference: Number.POSITIVE_INFINITY, room: maxAddresses }
}

/** Looks up the servers by preference, `namesAtOnce` at a time, until it has enough addresses or reaches a limit. */
async function findHosts(
  options: Options,
  exchanges: DnsRecords['MX'][],
  search: Search,
  asking: Bounded,
): Promise<Found> {
  const startedMs = options.clock.monotonicMs()
  // Our own name is recognized before any address is asked for, wherever in a long list it is.
  const areOwn = await Promise.all(exchanges.map(({ exchange }) => options.isOwn(exchange, [])))
  dropFrom(
    search,
    Math.min(
      ...exchanges.map(({ preference }, index) => (areOwn[index] ? preference : Number.POSITIVE_INFINITY)),
    ),
  )
  const unpassed = exchanges.filter(({ exchange }) => !search.passed.has(exchange))
  if (unpassed.length === 0) search.passed = none
  // Shuffles before the cut as well, so that each of many equal servers is used at some time.
  const queue = shuffle(unpassed.length > 0 ? unpassed : exchanges, options.random)
  const isBetter = ({ preference }: DnsRecords['MX']) => preference < search.ownPreference
  let asked = 0
  while (asked < queue.length && isBetter(queue[asked]!) && search.room > 0) {
    const limitMs = search.unknown ? patienceMs.unanswered : patienceMs.answered
    const isLate = options.clock.monotonicMs() - startedMs > limitMs
    if (asking.queries.left < 2 * namesAtOnce || (isLate && search.hosts.length > 0)) break
    await resolveSome(options, queue.slice(asked, asked + namesAtOnce).filter(isBetter), search, asking)
    asked += namesAtOnce
  }
  const cut = queue
    .slice(0, asked)
    .filter((server) => isBetter(server) && !search.searched.includes(server.exchange))
  return conclude(search, queue.slice(asked).filter(isBetter).length + cut.length)
}

/** The result of a search that has left `left` mail servers for a later one. */
function conclude(search: Search, left: number): Found {
  const { hosts, unknown, searched } = search
  const progress = { searched, left }
  // RFC 5321 5.1: hosts that were found are tried, even if others cannot be looked up now.
  if (hosts.length > 0) {
    const cacheMs = unknown ? 0 : Math.min(search.ttlSeconds * 1000, maxCacheMs)
    return { hops: { status: 'ok', hosts, ...progress }, cacheMs }
  }
  if (unknown) return temporary(unknown, progress)
  if (left > 0)
    return temporary(`none of the first ${searched.length} of its mail servers has an address`, progress)
  // Not permanent: an earlier look-up may have found addresses.
  if (search.passed.size > 0) return temporary('its other mail servers have no address', progress)
  // RFC 5321 5.1: if no server remains that is better than this one, the mail is undeliverable.
  if (search.ownPreference < Number.POSITIVE_INFINITY)
    return {
      hops: {
        status: 'mail_loop',
        reason: 'its mail server is this service, which does not receive for it: a mail loop',
      },
      cacheMs: 0,
    }
  const reason = search.isRefused
    ? 'its mail servers have no public address'
    : 'its mail servers have no address'
  return nothing({ status: 'no_address', reason }, search.noneTtlSeconds)
}

async function resolveSome(
  { resolver, isAllowed, isOwn }: Options,
  exchanges: DnsRecords['MX'][],
  search: Search,
  asking: Bounded,
): Promise<void> {
  const resolved = await Promise.all(
    exchanges.map(async ({ exchange, preference }) => {
      const found = await findAddressRecords(resolver, exchange, asking)
      const { records, ttlSeconds, temporaryReason } = found
      search.noneTtlSeconds = Math.min(search.noneTtlSeconds, ttlSeconds)
      const isOurs = await isOwn(
        exchange,
        records.map(({ address }) => address),
      )
      const host = { name: exchange, preference, records, isOurs }
      const bases = search.names.length > 0 ? await findBases(resolver, exchange, found, asking) : []
      if ('reason' in bases) return { ...host, records: [], temporaryReason: bases.reason, dane: null }
      const dane = bases.length > 0 ? { bases, names: [exchange, ...search.names] } : null
      return { ...host, temporaryReason, dane }
    }),
  )
  dropFrom(
    search,
    Math.min(...resolved.map(({ isOurs, preference }) => (isOurs ? preference : Number.POSITIVE_INFINITY))),
  )
  for (const { name, preference, records, temporaryReason, dane } of resolved) {
    if (preference >= search.ownPreference) continue
    search.unknown ??= temporaryReason
    search.isRefused ||= records.length > 0
    const allowed = records.filter(({ address }) => isAllowed(address) && !search.passed.has(address))
    const taken = allowed.slice(0, search.room)
    if (taken.length === allowed.length) search.searched.push(name)
    if (taken.length === 0) continue
    search.room -= taken.length
    search.ttlSeconds = Math.min(search.ttlSeconds, ...taken.map(({ ttlSeconds }) => ttlSeconds))
    search.hosts.push({ name, preference, addresses: taken.map(({ address }) => address), dane })
  }
}

// RFC 5321 5.1: if we are among the servers, only servers with a better preference are tried, or mail would loop.
function dropFrom(search: Search, ownPreference: number): void {
  search.ownPreference = Math.min(search.ownPreference, ownPreference)
  search.hosts = search.hosts.filter(({ preference }) => preference < search.ownPreference)
}

function temporary(reason: string, progress: Partial<Progress> = {}): Found {
  return { hops: { status: 'temporary', reason, ...progress }, cacheMs: 0 }
}

const tookTooLong = temporary('DNS took too long')

// RFC 2308 5: an absence without a SOA has no TTL, and is not remembered.
function nothing(hops: Hops, ttlSeconds = 0): Found {
  return { hops, cacheMs: Math.min(ttlSeconds * 1000, noneFoundCacheMs) }
}

// RFC 5321 5.1: hosts of equal preference are tried in random order, to spread the load.
function shuffle<Server extends { preference: number }>(
  servers: readonly Server[],
  random: () => number,
): Server[] {
  return servers
    .map((server) => ({ server, lot: random() }))
    .sort((one, other) => one.server.preference - other.server.preference || one.lot - other.lot)
    .map(({ server }) => server)
}
