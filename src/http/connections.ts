// Bounds open connections, in all and from one address, so that one host cannot take them all.
import type { IncomingMessage } from 'node:http'
import type { Server, Socket } from 'node:net'
import { inRanges, networkOf, writtenAddress } from '../base/ip-address.ts'
import type { Awaitable } from '../base/within.ts'

const maxOpen = 10_000
/**
 * For one IPv4 address or IPv6 /64: enough for all 1,000 streams of an organization, and a fifth of the total. Loopback
 * counts as any other. A proxy on this machine must be named as trusted: only it can distinguish and bound its clients.
 */
const maxOfNetwork = 2_000

/** Slow requests and idle connections are closed, which frees their slots. */
export const connectionLimits = {
  /** Closes a connection after this much silence. */
  timeoutMs: 120_000,
  keepAliveMs: 75_000,
  requestTimeout: 120_000,
  headersTimeout: 20_000,
  connectionsCheckingInterval: 5_000,
}

/** When the server stops, the first request of a connection has this long to arrive. */
const requestComesMs = 2_000

/** Counts the connections of networks, and all of them: in this process, or in the supervisor for all workers. */
export interface NetworkCounts {
  /** Counts a connection. False: there are too many, and this one must be closed. True: one `give` must follow. */
  take(network: string): Awaitable<boolean>
  give(network: string): void
}

/** The counts of one process. */
export class OwnNetworkCounts implements NetworkCounts {
  readonly #counts = new Map<string, number>()
  #all = 0

  take(network: string): boolean {
    const count = (this.#counts.get(network) ?? 0) + 1
    // Otherwise one host could hold every connection and keep all others out.
    if (count > maxOfNetwork || this.#all >= maxOpen) return false
    this.#all++
    this.#counts.set(network, count)
    return true
  }

  give(network: string): void {
    this.#all--
    const left = (this.#counts.get(network) ?? 0) - 1
    if (left > 0) this.#counts.set(network, left)
    else this.#counts.delete(network)
  }
}

interface ConnectionBounds {
  trustedProxies: readonly string[]
  networks?: NetworkCounts
}

/** The open connections of all listeners together. */
export class OpenConnections {
  readonly #isProxy: (ip: string) => boolean
  readonly #networks: NetworkCounts
  /** Connections without a request so far, by address and ports. */
  readonly #unasked = new Map<string, { socket: Socket; sinceMs: number }>()
  #open = 0

  /** For `trustedProxies` (CIDRs), only the bound on all connections of this process applies. */
  constructor({ trustedProxies, networks = new OwnNetworkCounts() }: ConnectionBounds) {
    this.#isProxy = inRanges(trustedProxies)
    this.#networks = networks
  }

  /** Watches a server's connections. Closes those over the bounds before reading anything from them. */
  bound(server: Server): void {
    server.on('request', ({ socket }: IncomingMessage) => this.#unasked.delete(endsOf(socket)))
    server.on('connection', (socket: Socket) => {
      if (this.#open >= maxOpen) {
        socket.destroy()
        return
      }
      const ends = endsOf(socket)
      this.#open++
      this.#unasked.set(ends, { socket, sinceMs: performance.now() })
      socket.once('close', () => {
        this.#open--
        this.#unasked.delete(ends)
      })
      const { remoteAddress } = socket
      // A peer that has already gone has no address.
      if (remoteAddress === undefined || this.#isProxy(remoteAddress)) return
      void this.#count(socket, networkOf(writtenAddress(remoteAddress)))
    })
  }

  /**
   * Closes connections without a request so far: browsers open some in reserve, and Node does not count them as idle. Spares
   * younger connections, whose handshake or header may be under way.
   */
  endUnasked(): void {
    const nowMs = performance.now()
    for (const { socket, sinceMs } of this.#unasked.values())
      if (nowMs - sinceMs > requestComesMs) socket.destroy()
  }

  /** Requests are read meanwhile. */
  async #count(socket: Socket, network: string): Promise<void> {
    const counting = this.#networks.take(network)
    if (!(typeof counting === 'boolean' ? counting : await counting)) {
      socket.destroy()
      return
    }
    const give = () => this.#networks.give(network)
    if (socket.destroyed) give()
    else socket.once('close', give)
  }
}

/** Returns the same key for a TCP connection and for the TLS socket on it. */
function endsOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}
