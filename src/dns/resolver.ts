// Asks DNS, and returns the answer as a value: records, no such name, no such record, or a temporary fault.
import { askServer, type Bounds, late, type ServerAddress } from './ask-server.ts'
import { type DnsResponse, type Question, type RawRecord, typeNumbers } from './message.ts'
import { NameServers } from './name-servers.ts'
import { type Known, malformed, readAnswer, type Temporary, temporary } from './read-answer.ts'
import { readHost, readIpv4, readIpv6, readMx, readText, readTlsa, type TlsaRecord } from './read-record.ts'
import { trustedResolvers } from './trusted-resolvers.ts'
import { readWireName, writeName } from './wire-name.ts'

export interface DnsRecords {
  /** The exchange is in lower case without its final dot, and empty for the root, "." */
  MX: { exchange: string; preference: number }
  A: { address: string; ttlSeconds: number }
  AAAA: { address: string; ttlSeconds: number }
  /** The joined strings of one record, one character per byte. Callers that want UTF-8 decode it. */
  TXT: string
  CNAME: string
  /** In lower case without the final dot. */
  PTR: string
  TLSA: TlsaRecord
}

export type DnsType = keyof DnsRecords

export type DnsAnswer<Record> =
  | ({ status: 'ok'; records: Record[] } & Known)
  | ({ status: 'nxdomain' } & Known)
  | ({ status: 'nodata' } & Known)
  | Temporary

/** Time limits and tries of one question. */
export interface Patience {
  /** Limit of one try at one server, TCP included. */
  timeoutMs?: number
  /** How often a silent server is asked. */
  tries?: number
  /** Limit of one question over all servers and tries. */
  deadlineMs?: number
}

export interface ResolverOptions extends Patience {
  /** Each is `ip:port` or `ip`. An empty list means the servers of the system. */
  servers: readonly string[]
  /** Whether the AD flag of the server at this address is believed. The default are the servers on this machine. */
  isTrusted?: (ip: string) => boolean
}

/** Limits of one question. The defaults are the resolver's own. */
export interface Asking extends Bounds, Patience {
  /** The asker on whose behalf the question is asked. Only `SharedResolver` counts it. */
  asker?: string
}

/** A stub resolver: it asks recursive servers, uses a new socket for each question, and caches no answer. */
export class Resolver {
  readonly #patience: Required<Patience>
  readonly #servers: NameServers
  readonly #isTrusted: (ip: string) => boolean

  constructor({ servers, isTrusted = trustedResolvers([]), ...patience }: ResolverOptions) {
    this.#isTrusted = isTrusted
    this.#patience = { timeoutMs: 3_000, tries: 2, deadlineMs: 30_000, ...patience }
    this.#servers = new NameServers(servers)
  }

  /** Asks for the records of one type. The server follows CNAMEs. Never rejects. */
  async resolve<Type extends DnsType>(
    type: Type,
    name: string,
    asking: Asking = {},
  ): Promise<DnsAnswer<DnsRecords[Type]>> {
    const wireName = writeName(name)
    // A name that DNS cannot hold cannot exist.
    if (!wireName) return { status: 'nxdomain' }
    return await this.#ask(type, wireName, { ...this.#patience, ...asking })
  }

  /**
   * Asks one server after the other until one answers. Asks silent servers again, but not those that answered with a
   * fault.
   */
  async #ask<Type extends DnsType>(
    type: Type,
    name: Buffer,
    { timeoutMs, tries, deadlineMs, ...bounds }: Required<Patience> & Bounds,
  ): Promise<DnsAnswer<DnsRecords[Type]>> {
    const untilMs = performance.now() + deadlineMs
    const question = { type: typeNumbers[type], name }
    let reason = 'no DNS server is known'
    let servers = this.#servers.list()
    for (let tried = 0; tried < tries; tried++) {
      const silent: ServerAddress[] = []
      for (const server of servers) {
        const leftMs = Math.min(timeoutMs, untilMs - performance.now())
        if (leftMs <= 0) return temporary(late)
        const reply = await askServer(server, question, leftMs, bounds)
        if ('givenUp' in reply) return temporary(reply.givenUp)
        this.#servers.note(server, 'silent' in reply ? 'silent' : 'answers')
        const answer =
          'silent' in reply
            ? temporary(reply.silent)
            : readRecords(this.#believed(reply, server), type, question)
        if (answer.status !== 'temporary') return answer
        reason = answer.reason
        if ('silent' in reply) silent.push(server)
      }
      servers = silent
    }
    return temporary(reason)
  }

  // RFC 7672 2.1.3: AD proves nothing unless the server and the path to it are trusted.
  #believed(reply: DnsResponse, { ip }: ServerAddress): DnsResponse {
    return { ...reply, isAuthenticated: reply.isAuthenticated && this.#isTrusted(ip) }
  }
}

function readRecords<Type extends DnsType>(
  reply: DnsResponse,
  type: Type,
  question: Question,
): DnsAnswer<DnsRecords[Type]> {
  const found = readAnswer(reply, question.type, readWireName(question.name, 0)!.name)
  if (found.status !== 'ok') return found
  const records = found.records.map((record) => readers[type](reply.bytes, record, found.ttlSeconds))
  const whole = records.filter((record) => record !== null)
  return whole.length === records.length ? { ...found, records: whole } : temporary(malformed)
}

const readers: {
  [Type in DnsType]: (message: Buffer, record: RawRecord, ttlSeconds: number) => DnsRecords[Type] | null
} = {
  A: (message, record, ttlSeconds) => withTtl(readIpv4(message, record), ttlSeconds),
  AAAA: (message, record, ttlSeconds) => withTtl(readIpv6(message, record), ttlSeconds),
  MX: readMx,
  TXT: readText,
  CNAME: readHost,
  PTR: readHost,
  TLSA: readTlsa,
}

function withTtl(address: string | null, ttlSeconds: number): DnsRecords['A'] | null {
  return address === null ? null : { address, ttlSeconds }
}
