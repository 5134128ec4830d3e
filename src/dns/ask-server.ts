// Asks one DNS server one question: over UDP, and over TCP where the answer is longer than a packet.
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { writtenAddress } from '../base/ip-address.ts'
import { type Query, type Question, type Reply, readReply, writeQuery } from './message.ts'
import { malformed } from './read-answer.ts'

export interface ServerAddress {
  ip: string
  family: 4 | 6
  port: number
}

/** Why there is no reply; `silent`: the server was not there, or said nothing of use. */
export interface Silence {
  silent: string
}

type Asking = (server: ServerAddress, query: Query, ms: number) => Promise<Reply | Silence>

export const late = 'DNS did not answer in time'
const rcodes = { FORMERR: 1, NOTIMP: 4 }
const longestMessageBytes = 0xffff

/** The reply to the question, or why there is none after `timeoutMs`. Never rejects. */
export async function askServer(
  server: ServerAddress,
  question: Question,
  timeoutMs: number,
): Promise<Reply | Silence> {
  const untilMs = performance.now() + timeoutMs
  const ask = async (asking: Asking, edns: 'with' | 'without') => {
    const leftMs = untilMs - performance.now()
    return leftMs > 0 ? await asking(server, writeQuery(question, edns), leftMs) : { silent: late }
  }
  let edns: 'with' | 'without' = 'with'
  let reply = await ask(askOverUdp, edns)
  if ('rcode' in reply && !reply.hasEdns && [rcodes.FORMERR, rcodes.NOTIMP].includes(reply.rcode)) {
    // RFC 6891 6.2.2: a server that does not know EDNS is asked without it.
    edns = 'without'
    reply = await ask(askOverUdp, edns)
  }
  // RFC 7766 5: what does not fit into a packet is asked for over TCP.
  return 'rcode' in reply && reply.isTruncated ? await ask(askOverTcp, edns) : reply
}

/**
 * Over a socket of its own, whose port the kernel draws. Whoever wants to forge the reply has to guess the port and the
 * id, and has one chance with each question; what is no reply to it is passed over.
 */
const askOverUdp: Asking = async (server, query, ms) => {
  const { promise, resolve } = Promise.withResolvers<Reply | Silence>()
  const socket = createSocket(server.family === 4 ? 'udp4' : 'udp6')
  let passedOver = 0
  const timer = setTimeout(() => resolve({ silent: passedOver > 0 ? malformed : late }), ms)
  socket.on('error', (error) => resolve(unreachable(error)))
  socket.on('connect', () => socket.send(query.bytes))
  socket.on('message', (bytes, from) => {
    // The kernel drops what comes from elsewhere once the socket is connected; what came before was let in.
    const isFromServer =
      from.port === server.port && writtenAddress(from.address) === writtenAddress(server.ip)
    const reply = isFromServer ? readReply(bytes, query) : null
    if (reply) resolve(reply)
    else passedOver++
  })
  socket.connect(server.port, server.ip)
  const reply = await promise
  clearTimeout(timer)
  socket.close()
  return reply
}

const askOverTcp: Asking = async (server, query, ms) => {
  const { promise, resolve } = Promise.withResolvers<Reply | Silence>()
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
  // RFC 7766 8: the length and the message go out together.
  socket.write(Buffer.concat([Buffer.of(query.bytes.length >> 8, query.bytes.length & 0xff), query.bytes]))
  const reply = await promise
  clearTimeout(timer)
  socket.destroy()
  return reply
}

/** One message behind its length, of whatever pieces; at most 64 KiB and what came with the last piece. */
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
