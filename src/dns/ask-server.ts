// Asks one DNS server one question: over UDP, and over TCP if the answer does not fit into a packet.
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { writtenAddress } from '../base/ip-address.ts'
import { type DnsResponse, type Query, type Question, readReply, writeQuery } from './message.ts'
import { malformed } from './read-answer.ts'

export interface ServerAddress {
  ip: string
  family: 4 | 6
  port: number
}

/** Why there is no reply. `silent`: the server could not be reached, or sent nothing usable. */
export interface Silence {
  silent: string
}

/** The question was given up, because its signal aborted or its query budget is spent. This is no fault of the server. */
export interface GivenUp {
  givenUp: string
}

/** Limits of a look-up that asks several questions. */
export interface Bounds {
  /** Aborts the questions under way: their sockets close, and nothing more is sent. */
  signal?: AbortSignal
  /** Queries that may still be sent, repeated queries and TCP included. Each query counts it down. */
  queries?: { left: number }
}

type Asking = (
  server: ServerAddress,
  query: Query,
  ms: number,
  signal: AbortSignal | undefined,
) => Promise<DnsResponse | Silence | GivenUp>

export const late = 'DNS did not answer in time'
export const tooMany = 'too many DNS questions would have to be asked'
const rcodes = { FORMERR: 1, NOTIMP: 4 }
const longestMessageBytes = 0xffff

/** The reply to the question, or why there is none after `timeoutMs`. Never rejects. */
export async function askServer(
  server: ServerAddress,
  question: Question,
  timeoutMs: number,
  { signal, queries }: Bounds = {},
): Promise<DnsResponse | Silence | GivenUp> {
  const untilMs = performance.now() + timeoutMs
  const ask = async (asking: Asking, edns: 'with' | 'without') => {
    const leftMs = untilMs - performance.now()
    if (signal?.aborted) return { givenUp: late }
    if (leftMs <= 0) return { silent: late }
    if (queries && queries.left-- <= 0) return { givenUp: tooMany }
    return await asking(server, writeQuery(question, edns), leftMs, signal)
  }
  let edns: 'with' | 'without' = 'with'
  let reply = await ask(askOverUdp, edns)
  if ('rcode' in reply && !reply.hasEdns && [rcodes.FORMERR, rcodes.NOTIMP].includes(reply.rcode)) {
    // RFC 6891 6.2.2: asks a server that does not know EDNS again, without it.
    edns = 'without'
    reply = await ask(askOverUdp, edns)
  }
  // RFC 7766 5: asks over TCP if the answer does not fit into a packet.
  return 'rcode' in reply && reply.isTruncated ? await ask(askOverTcp, edns) : reply
}

/**
 * Uses a new socket, whose port the kernel draws at random. A forger must guess the port and the id, and has one chance
 * with each question. Other packets are ignored.
 */
const askOverUdp: Asking = async (server, query, ms, signal) => {
  const { promise, resolve } = Promise.withResolvers<DnsResponse | Silence | GivenUp>()
  const giveUp = () => resolve({ givenUp: late })
  signal?.addEventListener('abort', giveUp)
  const socket = createSocket(server.family === 4 ? 'udp4' : 'udp6')
  let passedOver = 0
  const timer = setTimeout(() => resolve({ silent: passedOver > 0 ? malformed : late }), ms)
  socket.on('error', (error) => resolve(unreachable(error)))
  socket.on('connect', () => socket.send(query.bytes))
  socket.on('message', (bytes, from) => {
    // A connected socket gets no packets from other senders, but some may have arrived before it was connected.
    const isFromServer =
      from.port === server.port && writtenAddress(from.address) === writtenAddress(server.ip)
    const reply = isFromServer ? readReply(bytes, query) : null
    if (reply) resolve(reply)
    else passedOver++
  })
  socket.connect(server.port, server.ip)
  const reply = await promise
  clearTimeout(timer)
  signal?.removeEventListener('abort', giveUp)
  socket.close()
  return reply
}

const askOverTcp: Asking = async (server, query, ms, signal) => {
  const { promise, resolve } = Promise.withResolvers<DnsResponse | Silence | GivenUp>()
  const giveUp = () => resolve({ givenUp: late })
  signal?.addEventListener('abort', giveUp)
  const socket = connect({ host: server.ip, port: server.port })
  const timer = setTimeout(() => resolve({ silent: late }), ms)
  const received = new LengthPrefixed()
  socket.on('error', (error) => resolve(unreachable(error)))
  socket.on('close', () => resolve({ silent: malformed }))
  socket.on('data', (chunk) => {
    const message = received.add(chunk)
    const reply = message && readReply(message, query)
    if (message) resolve(reply && !reply.isTruncated ? reply : { silent: malformed })
  })
  // RFC 7766 8: the length and the message go out in one write.
  socket.write(Buffer.concat([Buffer.of(query.bytes.length >> 8, query.bytes.length & 0xff), query.bytes]))
  const reply = await promise
  clearTimeout(timer)
  signal?.removeEventListener('abort', giveUp)
  socket.destroy()
  return reply
}

/** Collects one length-prefixed message from pieces of any size. Keeps at most 64 KiB. */
class LengthPrefixed {
  readonly #bytes = Buffer.alloc(2 + longestMessageBytes)
  #length = 0

  /** The message, once it is complete. */
  add(chunk: Buffer): Buffer | null {
    this.#length += chunk.copy(this.#bytes, this.#length)
    const end = 2 + this.#bytes.readUInt16BE(0)
    return this.#length >= Math.max(end, 2) && this.#length >= 2 ? this.#bytes.subarray(2, end) : null
  }
}

function unreachable(error: Error): Silence {
  const { code = error.message } = error as NodeJS.ErrnoException
  return { silent: `no DNS server could be reached (${code})` }
}
