// A DNS server on loopback, UDP and TCP on one port, with a zone and faults that a test sets.
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Answer,
  AUTHENTIC_DATA,
  decode,
  encode,
  type Packet,
  RECURSION_AVAILABLE,
  TRUNCATED_RESPONSE,
} from 'dns-packet'

/** As the resolver returns it: the association is in hexadecimal. */
interface TlsaRecord {
  usage: number
  selector: number
  matchingType: number
  association: string
}

export interface ZoneRecords {
  /** Preference and exchange; '.' makes a null MX. */
  MX?: [number, string][]
  A?: string[]
  AAAA?: string[]
  /** One record per entry: its text, or its strings. */
  TXT?: (string | string[])[]
  CNAME?: string
  PTR?: string[]
  TLSA?: TlsaRecord[]
  ttlSeconds?: number
}

/**
 * `truncated`: always TC over UDP. `garbage`: bytes that are no DNS. The right answer under another id (`otherId`), to
 * another question, or from another port. `withoutEdns`: FORMERR for queries with EDNS. `referral`: the answer of a server
 * that neither has the name nor asks others.
 */
export type DnsFault =
  | 'SERVFAIL'
  | 'REFUSED'
  | 'silent'
  | 'truncated'
  | 'garbage'
  | 'otherId'
  | 'otherQuestion'
  | 'otherPort'
  | 'withoutEdns'
  | 'referral'

export interface StartOptions {
  host?: string
  port?: number
  /** Handles TCP connections instead of the server. */
  converse?: (socket: Socket) => void
}

/** Returns the messages to send in reply to a query's bytes: none, one or several. */
export type WriteReplies = (query: Buffer, transport: 'udp' | 'tcp') => Buffer[]

export interface AskedQuestion {
  name: string
  type: string
  transport: 'udp' | 'tcp'
}

const rcodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 }
// The UDP size that modern resolvers announce. Longer answers are truncated.
const udpSizeBytes = 1232

export class DnsServer {
  /** `127.0.0.1:port`, as `POSTHORN_DNS` takes it. */
  readonly address: string
  /** Every question that arrived, in order. */
  readonly asked: AskedQuestion[] = []
  /** The number of queries that arrived while answers were held back. */
  held = 0
  /** The zone and times in negative answers. Null: they have no SOA. */
  soa: { zone: string; ttlSeconds: number; minimumSeconds: number } | null = null
  /** Names at and below which answers are signed, as a validating resolver reports it: with AD. */
  readonly signed = new Set<string>()
  /** Complete replies for names that have a writer. */
  readonly #writers = new Map<string, WriteReplies>()
  readonly #delaysMs = new Map<string, number>()
  readonly #udp: UdpSocket
  readonly #tcp: Server
  readonly #connections = new Set<Socket>()
  readonly #zone = new Map<string, ZoneRecords>()
  readonly #faults = new Map<string, DnsFault>()
  #held: Promise<void> | null = null
  #isClosed = false

  private constructor(udp: UdpSocket, tcp: Server, converse: StartOptions['converse']) {
    this.#udp = udp
    this.#tcp = tcp
    const { address, family, port } = udp.address()
    this.address = family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`
    udp.on('message', async (message, peer) => {
      if (this.#held) this.held++
      await this.#held
      await this.#delay(message)
      for (const reply of this.#answer(message, 'udp')) await this.#sendPacket(reply, message, peer)
    })
    tcp.on('connection', (socket) => {
      this.#connections.add(socket)
      socket.on('close', () => this.#connections.delete(socket))
      // A resolver that hangs up early does not fail the test.
      socket.on('error', () => socket.destroy())
      if (converse) converse(socket)
      else this.#converse(socket)
    })
  }

  /** Starts on a free port with `zone`. A name does not exist if the zone has neither it nor a name below it. */
  static async start(
    zone: Record<string, ZoneRecords> = {},
    { host = '127.0.0.1', port = 0, converse }: StartOptions = {},
  ): Promise<DnsServer> {
    for (;;) {
      const udp = createSocket(host.includes(':') ? 'udp6' : 'udp4')
      udp.bind(port, host)
      await once(udp, 'listening')
      const tcp = createServer()
      try {
        tcp.listen(udp.address().port, host)
        await once(tcp, 'listening')
      } catch (error) {
        udp.close()
        if (port !== 0) throw error
        // The same TCP port is in use: try another pair.
        continue
      }
      const server = new DnsServer(udp, tcp, converse)
      for (const [name, records] of Object.entries(zone)) server.set(name, records)
      return server
    }
  }

  /** Replaces the records of a name. */
  set(name: string, records: ZoneRecords): void {
    this.#zone.set(name.toLowerCase(), records)
  }

  remove(name: string): void {
    this.#zone.delete(name.toLowerCase())
  }

  /** Answers every query for `name`, or those of one type, with a fault. Null removes the fault. */
  fail(name: string, fault: DnsFault | null, type = '*'): void {
    const key = `${name.toLowerCase()} ${type}`
    if (fault) this.#faults.set(key, fault)
    else this.#faults.delete(key)
  }

  /** Delays answers for `name` by this time. */
  delay(name: string, ms: number): void {
    this.#delaysMs.set(name.toLowerCase(), ms)
  }

  /** Sends the replies of `write` to every query for `name`. Null ends that. */
  answerWith(name: string, write: WriteReplies | null): void {
    if (write) this.#writers.set(name.toLowerCase(), write)
    else this.#writers.delete(name.toLowerCase())
  }

  /** Holds back answers over UDP from now on until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held = promise
    return () => {
      this.#held = null
      resolve()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const socket of this.#connections) socket.destroy()
    this.#tcp.close()
    this.#udp.close()
    await Promise.all([once(this.#tcp, 'close'), once(this.#udp, 'close')])
  }

  #converse(socket: Socket): void {
    let received = Buffer.alloc(0)
    socket.on('data', async (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const end = 2 + received.readUInt16BE(0)
        const message = received.subarray(2, end)
        received = received.subarray(end)
        await this.#delay(message)
        for (const reply of this.#answer(message, 'tcp')) {
          const prefix = Buffer.alloc(2)
          prefix.writeUInt16BE(reply.length)
          socket.write(Buffer.concat([prefix, reply]))
        }
      }
    })
  }

  async #delay(message: Buffer): Promise<void> {
    const ms = this.#delaysMs.get(decode(message).questions[0]!.name.toLowerCase())
    if (ms) await pause(ms)
  }

  /** Sends from this server's port, or from another one if the fault says so. */
  async #sendPacket(packet: Buffer, message: Buffer, peer: { port: number; address: string }): Promise<void> {
    const { name, type } = decode(message).questions[0]!
    if (this.#faultOf(name, type) !== 'otherPort') {
      // The socket may have been closed while the answer was held back.
      if (!this.#isClosed) this.#udp.send(packet, peer.port, peer.address)
      return
    }
    const other = createSocket('udp4')
    other.send(packet, peer.port, peer.address, () => other.close())
    await once(other, 'close')
  }

  #faultOf(name: string, type: string): DnsFault | undefined {
    const key = name.toLowerCase()
    return this.#faults.get(`${key} ${type}`) ?? this.#faults.get(`${key} *`)
  }

  #answer(message: Buffer, transport: 'udp' | 'tcp'): Buffer[] {
    const query = decode(message)
    const { name, type } = query.questions[0]!
    this.asked.push({ name, type, transport })
    const key = name.toLowerCase()
    const write = this.#writers.get(key)
    if (write) return write(message, transport)
    const fault = this.#faultOf(name, type)
    if (fault === 'silent') return []
    if (fault === 'garbage') return [Buffer.from('this is no answer')]
    if (fault === 'SERVFAIL' || fault === 'REFUSED') return [this.#reply(query, rcodes[fault], [])]
    if (fault === 'withoutEdns' && query.additionals?.length) return [this.#reply(query, rcodes.FORMERR, [])]
    if (fault === 'referral') return [encode({ ...query, type: 'response', flags: 0, additionals: [] })]
    const answers = this.#collect(key, type)
    const id = fault === 'otherId' ? query.id! ^ 1 : query.id!
    const questions = fault === 'otherQuestion' ? [{ name: `other.${name}`, type }] : query.questions
    const full = this.#reply(
      { ...query, id, questions },
      answers ? rcodes.NOERROR : rcodes.NXDOMAIN,
      answers ?? [],
    )
    const isTooLong = full.length > udpSizeBytes || fault === 'truncated'
    return transport === 'udp' && isTooLong
      ? [this.#reply(query, rcodes.NOERROR, [], TRUNCATED_RESPONSE)]
      : [full]
  }

  #reply(query: Packet, rcode: number, answers: Answer[], flags = 0): Buffer {
    const { name, type: asked } = query.questions[0]!
    // A CNAME question ends at the alias itself.
    const followed = asked === 'CNAME' ? [] : answers.filter(({ type }) => type === 'CNAME')
    const names = [name, ...followed.map(({ data }) => String(data))]
    const ad = names.every((name) => this.#isSigned(name)) ? AUTHENTIC_DATA : 0
    const isAbsent = rcode === rcodes.NXDOMAIN || !answers.some(({ type }) => type !== 'CNAME')
    return encode({
      id: query.id!,
      type: 'response',
      flags: RECURSION_AVAILABLE | ad | flags | rcode,
      questions: query.questions,
      answers,
      authorities: this.soa && isAbsent ? [toSoa(this.soa)] : [],
    })
  }

  /** The records of a name and type behind its CNAMEs. Null if the name does not exist. */
  #collect(start: string, type: string): Answer[] | null {
    const answers: Answer[] = []
    let name = start
    // A loop ends after as many steps as real resolvers take.
    for (let steps = 0; steps < 16; steps++) {
      const records = this.#zone.get(name)
      if (!records) return answers.length > 0 || this.#isAbove(name) ? answers : null
      const ttl = records.ttlSeconds ?? 300
      if (records.CNAME === undefined || type === 'CNAME')
        return [...answers, ...toAnswers(name, type, ttl, records)]
      answers.push({ type: 'CNAME', name, ttl, data: records.CNAME })
      name = records.CNAME.toLowerCase()
    }
    return answers
  }

  #isSigned(name: string): boolean {
    const full = `.${name.toLowerCase()}`
    return [...this.signed].some((zone) => full.endsWith(`.${zone}`))
  }

  #isAbove(name: string): boolean {
    return [...this.#zone.keys()].some((known) => known.endsWith(`.${name}`))
  }
}

function toAnswers(name: string, type: string, ttl: number, records: ZoneRecords): Answer[] {
  const values: Record<string, unknown[]> = {
    MX: (records.MX ?? []).map(([preference, exchange]) => ({ preference, exchange })),
    A: records.A ?? [],
    AAAA: records.AAAA ?? [],
    TXT: (records.TXT ?? []).map((text) => (typeof text === 'string' ? inStrings(text) : text)),
    CNAME: records.CNAME === undefined ? [] : [records.CNAME],
    PTR: records.PTR ?? [],
    TLSA: (records.TLSA ?? []).map(({ association, ...numbers }) => ({
      ...numbers,
      certificate: Buffer.from(association, 'hex'),
    })),
  }
  return (values[type] ?? []).map((value) => ({ type, name, ttl, data: value }))
}

/** RFC 1035 3.3: a string holds at most 255 bytes. */
function inStrings(text: string): string[] {
  return text.match(/.{1,255}/gs) ?? ['']
}

function toSoa({ zone, ttlSeconds, minimumSeconds }: NonNullable<DnsServer['soa']>): Answer {
  const times = { serial: 1, refresh: 60, retry: 60, expire: 60, minimum: minimumSeconds }
  const content = { mname: `ns.${zone}`, rname: `hostmaster.${zone}`, ...times }
  return { type: 'SOA', name: zone, ttl: ttlSeconds, data: content }
}
