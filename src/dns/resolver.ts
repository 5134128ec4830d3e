// Asks DNS, and gives the answer as a value: found, no such name, no such record, or not to be known now.
import { Resolver as SystemResolver } from 'node:dns/promises'

export interface DnsRecords {
  /** The exchange is in lower case without its trailing dot; empty for the root, "." */
  MX: { exchange: string; preference: number }
  A: { address: string; ttlSeconds: number }
  AAAA: { address: string; ttlSeconds: number }
  /** The strings of one record, joined. */
  TXT: string
  CNAME: string
  /** In lower case without the trailing dot. */
  PTR: string
}

export type DnsType = keyof DnsRecords

export type DnsAnswer<Record> =
  | { status: 'ok'; records: Record[] }
  | { status: 'nxdomain' }
  | { status: 'nodata' }
  /** SERVFAIL, REFUSED, a timeout, a malformed answer: nothing was learned, ask again later. */
  | { status: 'temporary'; reason: string }

export interface ResolverOptions {
  /** `ip:port` or `ip`; none means those of the system. */
  servers: readonly string[]
  /** For one try at one server. A question takes at most about this times `tries` times the number of servers. */
  timeoutMs?: number
  tries?: number
}

export class Resolver {
  readonly #system: SystemResolver

  constructor({ servers, timeoutMs = 3000, tries = 2 }: ResolverOptions) {
    this.#system = new SystemResolver({ timeout: timeoutMs, maxTimeout: timeoutMs, tries })
    if (servers.length > 0) this.#system.setServers(servers)
  }

  /** Asks for the records of one type; CNAMEs are followed by the server asked. Never rejects. */
  async resolve<Type extends DnsType>(type: Type, name: string): Promise<DnsAnswer<DnsRecords[Type]>> {
    try {
      const records = await lookup[type](this.#system, name)
      return records.length > 0 ? { status: 'ok', records } : { status: 'nodata' }
    } catch (error) {
      // The world's answer comes as an exception here and leaves as a value.
      return toAnswer(error)
    }
  }
}

const lookup: { [Type in DnsType]: (system: SystemResolver, name: string) => Promise<DnsRecords[Type][]> } = {
  MX: async (system, name) => {
    const records = await system.resolveMx(name)
    return records.map(({ exchange, priority }) => ({ exchange: hostName(exchange), preference: priority }))
  },
  A: async (system, name) => withTtl(await system.resolve4(name, { ttl: true })),
  AAAA: async (system, name) => withTtl(await system.resolve6(name, { ttl: true })),
  // RFC 7208 3.3: the strings of a record are one text, without spaces between them.
  TXT: async (system, name) => (await system.resolveTxt(name)).map((strings) => strings.join('')),
  CNAME: async (system, name) => (await system.resolveCname(name)).map(hostName),
  PTR: async (system, name) => (await system.resolvePtr(name)).map(hostName),
}

function hostName(name: string): string {
  return name.replace(/\.$/, '').toLowerCase()
}

function withTtl(records: { address: string; ttl: number }[]): DnsRecords['A'][] {
  return records.map(({ address, ttl }) => ({ address, ttlSeconds: ttl }))
}

function toAnswer(error: unknown): Exclude<DnsAnswer<never>, { status: 'ok' }> {
  const code = (error as NodeJS.ErrnoException).code ?? String(error)
  // EBADNAME: a label or the name is too long for DNS, so it cannot exist.
  if (code === 'ENOTFOUND' || code === 'EBADNAME') return { status: 'nxdomain' }
  if (code === 'ENODATA') return { status: 'nodata' }
  return { status: 'temporary', reason: reasons[code] ?? `DNS answered ${code}` }
}

const reasons: Record<string, string> = {
  ESERVFAIL: 'DNS answered SERVFAIL',
  EREFUSED: 'DNS answered REFUSED',
  ETIMEOUT: 'DNS did not answer in time',
  ECONNREFUSED: 'no DNS server could be reached',
  EBADRESP: 'DNS gave a malformed answer',
}
