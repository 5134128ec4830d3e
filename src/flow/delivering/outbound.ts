// Chooses the source address of outbound connections.
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isLoopback } from '../../webhook/address-guard.ts'

/** At most one address of each family. Null: the system chooses. */
export interface OutboundAddresses {
  ipv4: string | null
  ipv6: string | null
}

/** The source address for a connection to `target`. Undefined: the system chooses. */
export function sourceFor({ ipv4, ipv6 }: OutboundAddresses, target: string): string | undefined {
  const source = isIPv6(target) ? ipv6 : ipv4
  // A smarthost on this machine knows us by the loopback address and trusts no other.
  if (source === null || (isLoopback(target) && !isLoopback(source))) return undefined
  return source
}

/** Whether this machine may have a way to `target`: it has none to an IPv6 address if it has no IPv6 address itself. */
export function canReach({ ipv6 }: OutboundAddresses, target: string): boolean {
  if (!isIPv6(target) || ipv6 !== null || isLoopback(target)) return true
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return own.some(({ address, internal }) => isIPv6(address) && !internal && !/^fe80:/i.test(address))
}

const discardPort = 9

/**
 * The address from which the system would connect to `target`. Null: there is no way to it. Sends nothing: the routing
 * table alone binds a UDP socket.
 */
export function systemSourceTo(target: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(target) ? 'udp6' : 'udp4')
    const settle = (source: string | null) => {
      socket.close()
      resolve(source)
    }
    socket.once('error', () => settle(null))
    socket.connect(discardPort, target, () => settle(socket.address().address))
  })
}
