// Reads the answer of a DNS reply to its question: records at the end of their aliases, an absence, or a temporary fault.
import { type DnsResponse, type RawRecord, typeNumbers } from './message.ts'
import { readHost } from './read-record.ts'

/** Facts that come with an answer. */
export interface Known {
  /** How long the answer is valid, from its receipt. Absent if DNS does not say. */
  ttlSeconds?: number
  /** The server reports that signatures prove the answer (AD). This is as trustworthy as the connection to that server. */
  isAuthenticated?: boolean
  /** The name that has the records, if the requested name is an alias. */
  canonicalName?: string
}

/** SERVFAIL, REFUSED, a timeout, a malformed answer: the answer is not known, so ask again later. */
export interface Temporary {
  status: 'temporary'
  reason: string
}

export type ReadAnswer =
  | ({ status: 'ok'; records: RawRecord[]; ttlSeconds: number } & Known)
  | ({ status: 'nxdomain' } & Known)
  | ({ status: 'nodata' } & Known)
  | Temporary

export const malformed = 'DNS gave a malformed answer'
const maxAliases = 10
const rcodes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'] as const
const longestTtlSeconds = 0x7fff_ffff
/** Two names of at least one byte each, and five numbers. */
const minSoaBytes = 22

/** Finds the records of `type`, a number, at `name`, which is in lower case and escaped. Does not read their contents. */
export function readAnswer(reply: DnsResponse, type: number, name: string): ReadAnswer {
  const code = rcodes[reply.rcode] ?? `code ${reply.rcode}`
  if (code !== 'NOERROR' && code !== 'NXDOMAIN') return temporary(`DNS answered ${code}`)
  const chain = followAliases(reply, type, name)
  if (chain.fault) return temporary(chain.fault)
  const absence = { ...negativeTtl(reply, chain), ...authenticated(reply) }
  if (code === 'NXDOMAIN') return { status: 'nxdomain', ...absence }
  const { records } = chain
  if (records.length === 0 && isReferral(reply)) return temporary('the DNS server does not answer for others')
  if (records.length === 0) return { status: 'nodata', ...absence }
  const ttlSeconds = Math.min(chain.ttlSeconds, ...records.map(ttlOf))
  const alias = chain.name === name ? {} : { canonicalName: chain.name }
  return { status: 'ok', records, ttlSeconds, ...authenticated(reply), ...alias }
}

export function temporary(reason: string): Temporary {
  return { status: 'temporary', reason }
}

function authenticated({ isAuthenticated }: DnsResponse): Known {
  return isAuthenticated ? { isAuthenticated } : {}
}

interface Chain {
  /** Records of the requested type at the end of the aliases. Records of other names are ignored. */
  records: RawRecord[]
  /** The name at the end of the aliases. */
  name: string
  /** The shortest TTL of the aliases. */
  ttlSeconds: number
  /** Why the chain could not be followed to its end. */
  fault: string | null
}

/** Follows CNAMEs within the reply. A loop ends at the first name that repeats, without records. */
function followAliases({ answers, bytes }: DnsResponse, type: number, asked: string): Chain {
  const seen = new Set<string>()
  const chain: Chain = { records: [], name: asked, ttlSeconds: Number.POSITIVE_INFINITY, fault: null }
  for (;;) {
    const own = answers.filter(({ name }) => name === chain.name)
    chain.records = own.filter((record) => record.type === type)
    const alias = own.find((record) => record.type === typeNumbers.CNAME)
    seen.add(chain.name)
    if (chain.records.length > 0 || !alias) return chain
    const target = readHost(bytes, alias)
    if (target === null) return { ...chain, fault: malformed }
    if (seen.has(target)) return chain
    if (seen.size > maxAliases)
      return { ...chain, fault: `DNS answered with more than ${maxAliases} aliases` }
    chain.ttlSeconds = Math.min(chain.ttlSeconds, ttlOf(alias))
    chain.name = target
  }
}

function ttlOf({ ttlSeconds }: RawRecord): number {
  return boundTtl(ttlSeconds)
}

// RFC 2181 8: a TTL with its first bit set counts as 0.
function boundTtl(seconds: number): number {
  return seconds > longestTtlSeconds ? 0 : seconds
}

/**
 * Whether the server only refers to other servers: it neither has the name nor offers recursion. We cannot use such a
 * server.
 */
function isReferral({ isAuthoritative, isRecursive, authorities }: DnsResponse): boolean {
  return !isAuthoritative && !isRecursive && !authorities.some(({ type }) => type === typeNumbers.SOA)
}

/** How long an absence is valid. */
function negativeTtl({ authorities, bytes }: DnsResponse, { name, ttlSeconds }: Chain): Known {
  const soa = authorities.find(
    ({ type, name: zone, start, end }) =>
      type === typeNumbers.SOA && isWithin(name, zone) && end - start >= minSoaBytes,
  )
  if (!soa) return {}
  // RFC 2308 5: the shorter of the SOA's own TTL and its last number.
  return { ttlSeconds: Math.min(ttlSeconds, ttlOf(soa), boundTtl(bytes.readUInt32BE(soa.end - 4))) }
}

function isWithin(name: string, zone: string): boolean {
  return zone === '' || name === zone || name.endsWith(`.${zone}`)
}
