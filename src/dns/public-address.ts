// Distinguishes public Internet addresses from addresses that we must not connect to because a stranger names them.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

// RFC 4291 2.4: every address outside the special ranges is global unicast, but only 2000::/3 has been assigned so far.
const globalUnicast6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether `ip` is the literal of a globally reachable unicast address. False for loopback, private, link-local, shared,
 * documentation, benchmarking, multicast and reserved ranges. False for IPv6 forms that carry an IPv4 address (mapped,
 * 6to4, Teredo, NAT64). False for texts that are no literal in the usual form (`0x7f.1`, `2130706433`, a host name).
 */
export function isPublicUnicast(ip: string): boolean {
  // Server-side request forgery: ipaddr.js reads octal, hexadecimal and shortened forms, which must be refused before it.
  if (isIP(ip) === 0) return false
  const address = ipaddr.parse(ip)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(globalUnicast6)
}
