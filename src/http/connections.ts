// Bounds on open connections, in all and from one address, so that one host cannot take them from all others.
import type { IncomingMessage } from 'node:http'
import type { Server, Socket } from 'node:net'
import { inRanges, networkOf, writtenAddress } from '../base/ip-address.ts'

const maxOpen = 10_000
/**
 * Of one IPv4 address or IPv6 /64: room for all 1,000 streams of an organization, and a fifth of the whole. Loopback counts
 * as any other: a proxy on this machine is to be named as trusted, since it alone can tell its clients apart and bound each.
 */
const maxOfNetwork = 2_000

/** Slow requests and idle connections give their place back. */
export const connectionLimits = {
  /** Of silence on a connection. */
  timeoutMs: 120_000,
  keepAliveMs: 75_000,
  requestTimeout: 120_000,
  headersTimeout: 20_000,
  connectionsCheckingInterval: 5_000,
}

/** How long the first request of a connection may take to come at a stop. */
const requestComesMs = 2_000

/** The connections that are open at all listeners together. */
export class OpenConnections {
  readonly #isProxy: (ip: string) => boolean
  readonly #ofNetwork = new Map<string, number>()
  /** Connections without a request so far, by address and ports. */
  readonly #unasked = new Map<string, { socket: Socket; sinceMs: number }>()
  #open = 0

  /** `trustedProxies` (CIDRs) have the bound of all alone. */
  constructor(trustedProxies: readonly string[]) {
    this.#isProxy = inRanges(trustedProxies)
  }

  /** Watches the connections of a server, and closes what is past the bounds before anything is read of it. */
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
      // A peer that has gone already has no address.
      if (remoteAddress === undefined || this.#isProxy(remoteAddress)) return
      this.#count(socket, networkOf(writtenAddress(remoteAddress)))
    })
  }

  /**
   * Closes connections without a request so far: browsers open some in reserve, and Node does not count them as idle. On a
   * younger one a handshake or a header may be under way.
   */
  endUnasked(): void {
    const nowMs = performance.now()
    for (const { socket, sinceMs } of this.#unasked.values())
      if (nowMs - sinceMs > requestComesMs) socket.destroy()
  }

  #count(socket: Socket, network: string): void {
    const open = this.#ofNetwork
    const count = (open.get(network) ?? 0) + 1
    // A host could otherwise hold every connection there is, and keep all others out.
    if (count > maxOfNetwork) {
      socket.destroy()
      return
    }
    open.set(network, count)
    socket.once('close', () => {
      const left = open.get(network)! - 1
      if (left > 0) open.set(network, left)
      else open.delete(network)
    })
  }
}

/** Returns the same for a TCP connection and for the TLS socket on it. */
function endsOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}
