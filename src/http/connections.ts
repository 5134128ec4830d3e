// Bounds on open connections, in all and from one address, so that one host cannot take them from all others.
import type { Server, Socket } from 'node:net'
import ipaddr from 'ipaddr.js'

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
  readonly #proxies: [ipaddr.IPv4 | ipaddr.IPv6, number][]
  readonly #ofNetwork = new Map<string, number>()
  #open = 0

  /** `trustedProxies` (CIDRs) have the bound of all alone. */
  constructor(trustedProxies: readonly string[]) {
    this.#proxies = trustedProxies.map((cidr) => ipaddr.parseCIDR(cidr))
  }

  /** Closes what is past the bounds before anything is read of it. */
  bound(server: Server): void {
    server.on('connection', (socket: Socket) => {
      if (this.#open >= maxOpen) {
        socket.destroy()
        return
      }
      this.#open++
      socket.once('close', () => this.#open--)
      const network = networkOf(socket.remoteAddress, this.#proxies)
      if (network !== null) this.#count(socket, network)
    })
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

/** What an address is counted under: a host has a whole IPv6 /64 to itself. Null: it is not. */
function networkOf(
  address: string | undefined,
  proxies: [ipaddr.IPv4 | ipaddr.IPv6, number][],
): string | null {
  // Who has gone already has no address.
  if (address === undefined) return null
  const ip = ipaddr.process(address.replace(/%.*$/, ''))
  if (proxies.some((range) => ip.kind() === range[0].kind() && ip.match(range))) return null
  return ip.kind() === 'ipv6' ? ip.toByteArray().slice(0, 8).join('.') : ip.toString()
}
