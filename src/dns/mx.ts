// Finds the mail servers of a domain, in the order in which to try them (RFC 5321 5.1).
import { BoundedMap } from '../base/bounded-map.ts'
import { Clock } from '../base/clock.ts'
import { within } from '../base/within.ts'
import type { Asking, DnsAnswer, DnsRecords, Resolver } from './resolver.ts'

export interface Host {
  name: string
  preference: number
  /** In the order to try them: IPv4 and IPv6 alternate, IPv4 first. Never empty. */
  addresses: readonly string[]
}

export type Hops =
  | { status: 'ok'; hosts: Host[] }
  | { status: 'null_mx' }
  | { status: 'domain_not_found' }
  /** There are records, but none leads to an allowed address. */
  | { status: 'no_address'; reason: string }
  | { status: 'temporary'; reason: string }

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
/** After this time, mail servers that were found do not wait for unresolved ones. */
const patienceMs = 1_000
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
}

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

  /** The hops of `domain` (A-labels). Each call shuffles hosts of equal preference. Never rejects. */
  async find(domain: string, asking: HopAsking = { asker: '' }): Promise<Hops> {
    const hops = this.recall(domain) ?? (await this.#join(cacheKey(domain), asking))
    return hops.status === 'ok' ? { status: 'ok', hosts: shuffle(hops.hosts, this.#options.random) } : hops
  }

  /** The cached hops of `domain`, without a question. */
  recall(domain: string): Hops | null {
    const cached = this.#cache.get(cacheKey(domain))
    return cached && cached.untilMs > this.#options.clock.monotonicMs() ? cached.hops : null
  }

  /** Joins a look-up of the domain by the same asker. Another asker's look-up may be waiting for that asker's share. */
  async #join(key: string, { asker, signal }: HopAsking): Promise<Hops> {
    if (signal?.aborted) return tookTooLong.hops
    const id = `${key} ${asker}`
    const lookup = this.#lookups.get(id) ?? this.#begin(id, key, asker)
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

  #begin(id: string, domain: string, asker: string): Lookup {
    const ending = new AbortController()
    const found = this.#ask(domain, asker, ending).finally(() => this.#lookups.delete(id))
    const lookup = { found, ending, waiting: 0 }
    this.#lookups.set(id, lookup)
    return lookup
  }

  async #ask(domain: string, asker: string, ending: AbortController): Promise<Hops> {
    const finding = resolveHops(this.#options, domain, { asker, signal: ending.signal })
    const { hops, cacheMs } = await within(this.#options.deadlineMs, finding, () => {
      ending.abort()
      return tookTooLong
    })
    if (cacheMs > 0) this.#cache.set(domain, { hops, untilMs: this.#options.clock.monotonicMs() + cacheMs })
    return hops
  }
}

function cacheKey(domain: string): string {
  return domain.toLowerCase().replace(/\.$/, '')
}

async function resolveHops(
  options: Options,
  domain: string,
  asked: { asker: string; signal: AbortSignal },
): Promise<Found> {
  const { maxQueries, timeoutMs, random } = options
  const asking: Bounded = { ...asked, queries: { left: maxQueries }, ...(timeoutMs && { timeoutMs }) }
  const answer = await options.resolver.resolve('MX', domain, asking)
  if (answer.status === 'temporary') return temporary(answer.reason)
  if (answer.status === 'nxdomain') return nothing({ status: 'domain_not_found' }, answer.ttlSeconds)
  // RFC 5321 5.1: without MX records the domain is its own mail server, with preference 0.
  if (answer.status === 'nodata')
    return findHosts(options, [{ exchange: domain, preference: 0 }], answer, asking)
  const named = answer.records.filter(({ exchange }) => exchange !== '')
  // RFC 7505 3: a single MX of "." means that the domain accepts no mail.
  if (named.length === 0) return nothing({ status: 'null_mx' }, answer.ttlSeconds)
  // Shuffles before the cut as well, so that each of many equal servers is used at some time.
  return findHosts(options, shuffle(named, random), answer, asking)
}

/** The results for the mail servers looked up so far. */
interface Search {
  hosts: Host[]
  ttlSeconds: number
  /** TTL of the result if no server has an allowed address. */
  noneTtlSeconds: number
  /** Why a server could not be looked up now. Null if all could. */
  unknown: string | null
  /** A server has only addresses that must not be reached. */
  isRefused: boolean
  /** A server is this deployment. */
  isOwn: boolean
  /** Number of addresses that may still be added. */
  room: number
}

/** Looks up the servers by preference, `namesAtOnce` at a time, until it has enough addresses or reaches a limit. */
async function findHosts(
  options: Options,
  exchanges: DnsRecords['MX'][],
  { ttlSeconds = Number.POSITIVE_INFINITY }: { ttlSeconds?: number },
  asking: Bounded,
): Promise<Found> {
  const startedMs = performance.now()
  const search: Search = {
    hosts: [],
    ttlSeconds,
    noneTtlSeconds: ttlSeconds,
    unknown: null,
    isRefused: false,
    isOwn: false,
    room: maxAddresses,
  }
  let asked = 0
  while (asked < exchanges.length && !search.isOwn && search.room > 0) {
    const isLate = performance.now() - startedMs > patienceMs
    if (asking.queries.left < 2 * namesAtOnce || (isLate && search.hosts.length > 0)) break
    await resolveSome(options, exchanges.slice(asked, asked + namesAtOnce), search, asking)
    asked += namesAtOnce
  }
  const { hosts, unknown } = search
  // RFC 5321 5.1: hosts that were found are tried, even if others cannot be looked up now.
  if (hosts.length > 0) {
    const cacheMs = unknown ? 0 : Math.min(search.ttlSeconds * 1000, maxCacheMs)
    return { hops: { status: 'ok', hosts }, cacheMs }
  }
  // Temporary, because this also happens while a domain moves to this service.
  if (search.isOwn)
    return temporary('its mail server is this service, which does not receive for it: a mail loop')
  if (unknown) return temporary(unknown)
  if (asked < exchanges.length)
    return temporary(`none of the first ${asked} of its mail servers has an address`)
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
      const { records, ttlSeconds, temporaryReason } = await findAddressRecords(resolver, exchange, asking)
      search.noneTtlSeconds = Math.min(search.noneTtlSeconds, ttlSeconds)
      const isOurs = await isOwn(
        exchange,
        records.map(({ address }) => address),
      )
      return { name: exchange, preference, records, temporaryReason, isOurs }
    }),
  )
  const ours = resolved.find(({ isOurs }) => isOurs)
  for (const { name, preference, records, temporaryReason } of resolved) {
    if (ours && preference >= ours.preference) continue
    search.unknown ??= temporaryReason
    search.isRefused ||= records.length > 0
    const allowed = records.filter(({ address }) => isAllowed(address)).slice(0, search.room)
    if (allowed.length === 0) continue
    search.room -= allowed.length
    search.ttlSeconds = Math.min(search.ttlSeconds, ...allowed.map(({ ttlSeconds }) => ttlSeconds))
    search.hosts.push({ name, preference, addresses: allowed.map(({ address }) => address) })
  }
  // RFC 5321 5.1: if we are among the servers, only servers with a better preference are tried, or mail would loop.
  if (!ours) return
  search.isOwn = true
  search.hosts = search.hosts.filter(({ preference }) => preference < ours.preference)
}

/** The addresses of a name in the order to try them, the shorter TTL of both answers, and why an answer is missing. */
export async function findAddressRecords(
  resolver: Pick<Resolver, 'resolve'>,
  name: string,
  asking: Asking = {},
) {
  const answers = await Promise.all([
    resolver.resolve('A', name, asking),
    resolver.resolve('AAAA', name, asking),
  ])
  const [four, six] = answers.map(recordsOf) as [DnsRecords['A'][], DnsRecords['A'][]]
  const failed = answers.find((answer) => answer.status === 'temporary')
  // IPv4 first: more hosts can use it, and more of them have a name and a history there.
  const records = Array.from({ length: Math.max(four.length, six.length) }, (_, index) => [
    four[index],
    six[index],
  ])
  return {
    records: records.flat().filter((record) => record !== undefined),
    ttlSeconds: Math.min(...answers.map(ttlOf)),
    temporaryReason: failed ? failed.reason : null,
  }
}

function ttlOf(answer: DnsAnswer<unknown>): number {
  return answer.status === 'temporary' ? 0 : (answer.ttlSeconds ?? 0)
}

function recordsOf(answer: DnsAnswer<DnsRecords['A']>): DnsRecords['A'][] {
  return answer.status === 'ok' ? answer.records : []
}

function temporary(reason: string): Found {
  return { hops: { status: 'temporary', reason }, cacheMs: 0 }
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
