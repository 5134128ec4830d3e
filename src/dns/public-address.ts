// Tells addresses on the public Internet from those that must not be reached on a stranger's word.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

// RFC 4291 2.4: what is not set aside below is global unicast, yet only 2000::/3 has ever been handed out.
const globalUnicast6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether `ip` is the literal of a globally reachable unicast address. False for loopback, private, link-local, shared,
 * documentation, benchmarking, multicast and reserved ranges, for IPv6 forms that carry an IPv4 address (mapped, 6to4,
 * Teredo, NAT64), and for whatever is no literal in the usual form (`0x7f.1`, `2130706433`, a host name).
 */
export function isPublicUnicast(ip: string): boolean {
  // Server-side request forgery: ipaddr.js reads octal, hexadecimal and shortened forms, which must not get this far.
  if (isIP(ip) === 0) return false
  const address = ipaddr.parse(ip)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(globalUnicast6)
}
