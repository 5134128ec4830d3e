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

/** The connections that are open at all listeners together. */
export class OpenConnections {
  readonly #isProxy: (ip: string) => boolean
  readonly #ofNetwork = new Map<string, number>()
  /** Those on which nothing has been asked, by their two ends. */
  readonly #spare = new Map<string, Socket>()
  #open = 0

  /** `trustedProxies` (CIDRs) have the bound of all alone. */
  constructor(trustedProxies: readonly string[]) {
    this.#isProxy = inRanges(trustedProxies)
  }

  /** Watches the connections of a server, and closes what is past the bounds before anything is read of it. */
  bound(server: Server): void {
    server.on('request', ({ socket }: IncomingMessage) => this.#spare.delete(endsOf(socket)))
    server.on('connection', (socket: Socket) => {
      if (this.#open >= maxOpen) {
        socket.destroy()
        return
      }
      const ends = endsOf(socket)
      this.#open++
      this.#spare.set(ends, socket)
      socket.once('close', () => {
        this.#open--
        this.#spare.delete(ends)
      })
      const { remoteAddress } = socket
      // A peer that has gone already has no address.
      if (remoteAddress === undefined || this.#isProxy(remoteAddress)) return
      this.#count(socket, networkOf(writtenAddress(remoteAddress)))
    })
  }

  /** Ends those on which nothing has been asked: browsers open some in reserve, and Node does not take them for idle. */
  endSpare(): void {
    for (const socket of this.#spare.values()) socket.destroy()
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

/** The same for a connection and for the TLS within it. */
function endsOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}
