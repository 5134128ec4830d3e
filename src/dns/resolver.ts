// Asks DNS, and gives the answer as a value: found, no such name, no such record, or not to be known now.
import { askServer, type Bounds, late, type ServerAddress } from './ask-server.ts'
import { type Question, type RawRecord, type Reply, typeNumbers } from './message.ts'
import { NameServers } from './name-servers.ts'
import { type Known, malformed, readAnswer, type Temporary, temporary } from './read-answer.ts'
import { readHost, readIpv4, readIpv6, readMx, readText } from './read-record.ts'
import { readName, writeName } from './wire-name.ts'

export interface DnsRecords {
  /** The exchange is in lower case without its trailing dot; empty for the root, "." */
  MX: { exchange: string; preference: number }
  A: { address: string; ttlSeconds: number }
  AAAA: { address: string; ttlSeconds: number }
  /** The strings of one record, joined, one character a byte: whoever wants UTF-8 decodes it. */
  TXT: string
  CNAME: string
  /** In lower case without the trailing dot. */
  PTR: string
}

export type DnsType = keyof DnsRecords

export type DnsAnswer<Record> =
  | ({ status: 'ok'; records: Record[] } & Known)
  | ({ status: 'nxdomain' } & Known)
  | ({ status: 'nodata' } & Known)
  | Temporary

/** How long a question is pursued. */
export interface Patience {
  /** For one try at one server, TCP included. */
  timeoutMs?: number
  /** How often a server that says nothing is asked. */
  tries?: number
  /** After so long nothing more is asked for one question. */
  deadlineMs?: number
}

export interface ResolverOptions extends Patience {
  /** `ip:port` or `ip`; none means those of the system. */
  servers: readonly string[]
}

/** What one question may cost; the resolver's own patience unless it says otherwise. */
export interface Asking extends Bounds, Patience {
  /** On whose behalf it is asked; counted by `SharedResolver` alone. */
  asker?: string
}

/** A stub resolver: it asks servers that do the work, each question over a socket of its own, and keeps no answer. */
export class Resolver {
  readonly #patience: Required<Patience>
  readonly #servers: NameServers

  constructor({ servers, ...patience }: ResolverOptions) {
    this.#patience = { timeoutMs: 3_000, tries: 2, deadlineMs: 30_000, ...patience }
    this.#servers = new NameServers(servers)
  }

  /** Asks for the records of one type; CNAMEs are followed by the server asked. Never rejects. */
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

  /** Server after server, until one knows; who said nothing is asked again, who answered without knowing is not. */
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
        const answer = 'silent' in reply ? temporary(reply.silent) : readRecords(reply, type, question)
        if (answer.status !== 'temporary') return answer
        reason = answer.reason
        if ('silent' in reply) silent.push(server)
      }
      servers = silent
    }
    return temporary(reason)
  }
}

function readRecords<Type extends DnsType>(
  reply: Reply,
  type: Type,
  question: Question,
): DnsAnswer<DnsRecords[Type]> {
  const found = readAnswer(reply, question.type, readName(question.name, 0)!.name)
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
}

function withTtl(address: string | null, ttlSeconds: number): DnsRecords['A'] | null {
  return address === null ? null : { address, ttlSeconds }
}
