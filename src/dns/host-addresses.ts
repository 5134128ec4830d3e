// Finds the addresses of one mail server, and the names that may have its TLSA records.
import type { Asking, DnsAnswer, DnsRecords, Resolver } from './resolver.ts'

/** The candidates for the TLSA base domain of a host. Empty if DNSSEC does not protect its addresses or its alias. */
export async function findBases(
  resolver: Pick<Resolver, 'resolve'>,
  host: string,
  { isAuthenticated, canonicalName }: Pick<AddressRecords, 'isAuthenticated' | 'canonicalName'>,
  asking: Asking,
): Promise<string[] | { reason: string }> {
  if (canonicalName === undefined) return isAuthenticated ? [host] : []
  // RFC 7672 2.2.2: the end of a secure alias comes first, then the host itself.
  if (isAuthenticated) return [canonicalName, host]
  // RFC 7672 2.2.2: if only the rest of the chain is insecure, the host itself is the only candidate.
  const alias = await resolver.resolve('CNAME', host, asking)
  // Stops a downgrade: an attacker could suppress this answer to turn DANE off.
  if (alias.status === 'temporary') return alias
  return alias.isAuthenticated ? [host] : []
}

export interface AddressRecords {
  records: DnsRecords['A'][]
  ttlSeconds: number
  /** Why an answer is missing. */
  temporaryReason: string | null
  /** DNSSEC proves all addresses. False if there are none. */
  isAuthenticated: boolean
  canonicalName: string | undefined
}

/** The addresses of a name in the order to try them, the shorter TTL of both answers, and facts about them. */
export async function findAddressRecords(
  resolver: Pick<Resolver, 'resolve'>,
  name: string,
  asking: Asking = {},
): Promise<AddressRecords> {
  const answers = await Promise.all([
    resolver.resolve('A', name, asking),
    resolver.resolve('AAAA', name, asking),
  ])
  const existing = answers.filter((answer) => answer.status === 'ok')
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
    isAuthenticated: existing.length > 0 && existing.every(({ isAuthenticated }) => isAuthenticated),
    canonicalName: existing[0]?.canonicalName,
  }
}

function ttlOf(answer: DnsAnswer<unknown>): number {
  return answer.status === 'temporary' ? 0 : (answer.ttlSeconds ?? 0)
}

function recordsOf(answer: DnsAnswer<DnsRecords['A']>): DnsRecords['A'][] {
  return answer.status === 'ok' ? answer.records : []
}
