// A DNS server on loopback, UDP and TCP on one port, with a zone and faults that a test sets.
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { type Answer, decode, encode, type Packet, RECURSION_AVAILABLE, TRUNCATED_RESPONSE } from 'dns-packet'

export interface ZoneRecords {
  /** Preference and exchange; '.' makes a null MX. */
  MX?: [number, string][]
  A?: string[]
  AAAA?: string[]
  /** One record a row: its text, or its strings. */
  TXT?: (string | string[])[]
  CNAME?: string
  ttlSeconds?: number
}

/** `truncated`: over UDP always TC. `garbage`: bytes that are no DNS. `otherId`: an answer to another question. */
export type DnsFault = 'SERVFAIL' | 'REFUSED' | 'silent' | 'truncated' | 'garbage' | 'otherId'

export interface AskedQuestion {
  name: string
  type: string
  transport: 'udp' | 'tcp'
}

const rcodes = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 }
// What a resolver of today announces over UDP; a longer answer is truncated.
const udpSizeBytes = 1232

export class DnsServer {
  /** `127.0.0.1:port`, as `POSTHORN_DNS` takes it. */
  readonly address: string
  /** Every question that arrived, in order. */
  readonly asked: AskedQuestion[] = []
  /** How many questions have arrived while it held its answers back. */
  held = 0
  readonly #udp: UdpSocket
  readonly #tcp: Server
  readonly #connections = new Set<Socket>()
  readonly #zone = new Map<string, ZoneRecords>()
  readonly #faults = new Map<string, DnsFault>()
  #held: Promise<void> | null = null

  private constructor(udp: UdpSocket, tcp: Server) {
    this.#udp = udp
    this.#tcp = tcp
    this.address = `${udp.address().address}:${udp.address().port}`
    udp.on('message', async (message, peer) => {
      if (this.#held) this.held++
      await this.#held
      const reply = this.#answer(message, 'udp')
      if (reply) udp.send(reply, peer.port, peer.address)
    })
    tcp.on('connection', (socket) => this.#converse(socket))
  }

  /** Starts on a free port with `zone`; names that are neither there nor above one that is do not exist. */
  static async start(
    zone: Record<string, ZoneRecords> = {},
    { host = '127.0.0.1', port = 0 }: { host?: string; port?: number } = {},
  ): Promise<DnsServer> {
    for (;;) {
      const udp = createSocket('udp4')
      udp.bind(port, host)
      await once(udp, 'listening')
      const tcp = createServer()
      try {
        tcp.listen(udp.address().port, host)
        await once(tcp, 'listening')
      } catch (error) {
        udp.close()
        if (port !== 0) throw error
        // The same port is taken for TCP: try another pair.
        continue
      }
      const server = new DnsServer(udp, tcp)
      for (const [name, records] of Object.entries(zone)) server.set(name, records)
      return server
    }
  }

  /** Puts the records of a name in place of what it had. */
  set(name: string, records: ZoneRecords): void {
    this.#zone.set(name.toLowerCase(), records)
  }

  remove(name: string): void {
    this.#zone.delete(name.toLowerCase())
  }

  /** Answers every question about `name`, or those of one type, with a fault; null mends it. */
  fail(name: string, fault: DnsFault | null, type = '*'): void {
    const key = `${name.toLowerCase()} ${type}`
    if (fault) this.#faults.set(key, fault)
    else this.#faults.delete(key)
  }

  /** Leaves what arrives over UDP from now on unanswered until the function given back is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held = promise
    return () => {
      this.#held = null
      resolve()
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#connections) socket.destroy()
    this.#tcp.close()
    this.#udp.close()
    await Promise.all([once(this.#tcp, 'close'), once(this.#udp, 'close')])
  }

  #converse(socket: Socket): void {
    this.#connections.add(socket)
    let received = Buffer.alloc(0)
    socket.on('close', () => this.#connections.delete(socket))
    // A resolver that hangs up early is no failure of the test.
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const end = 2 + received.readUInt16BE(0)
        const reply = this.#answer(received.subarray(2, end), 'tcp')
        received = received.subarray(end)
        if (!reply) continue
        const prefix = Buffer.alloc(2)
        prefix.writeUInt16BE(reply.length)
        socket.write(Buffer.concat([prefix, reply]))
      }
    })
  }

  #answer(message: Buffer, transport: 'udp' | 'tcp'): Buffer | null {
    const query = decode(message)
    const { name, type } = query.questions[0]!
    this.asked.push({ name, type, transport })
    const key = name.toLowerCase()
    const fault = this.#faults.get(`${key} ${type}`) ?? this.#faults.get(`${key} *`)
    if (fault === 'silent') return null
    if (fault === 'garbage') return Buffer.from('this is no answer')
    if (fault === 'SERVFAIL' || fault === 'REFUSED') return reply(query, rcodes[fault], [])
    const answers = this.#collect(key, type)
    const id = fault === 'otherId' ? query.id! ^ 1 : query.id!
    const full = reply({ ...query, id }, answers ? rcodes.NOERROR : rcodes.NXDOMAIN, answers ?? [])
    const isTooLong = full.length > udpSizeBytes || fault === 'truncated'
    return transport === 'udp' && isTooLong ? reply(query, rcodes.NOERROR, [], TRUNCATED_RESPONSE) : full
  }

  /** The records of a name and type behind its CNAMEs; null where the name does not exist. */
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
  }
  return (values[type] ?? []).map((value) => ({ type, name, ttl, data: value }))
}

/** RFC 1035 3.3: a string holds at most 255 bytes. */
function inStrings(text: string): string[] {
  return text.match(/.{1,255}/gs) ?? ['']
}

function reply(query: Packet, rcode: number, answers: Answer[], flags = 0): Buffer {
  return encode({
    id: query.id!,
    type: 'response',
    flags: RECURSION_AVAILABLE | flags | rcode,
    questions: query.questions,
    answers,
  })
}
