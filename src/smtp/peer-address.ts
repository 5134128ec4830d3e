// A peer's IP address in the one form that the rest of the house sees, and the network it is counted under.
import { isIPv6 } from 'node:net'

/** IPv4-mapped addresses as IPv4, without the zone of a link-local one. */
export function canonicalAddress(address: string): string {
  return address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '')
}

/** What limits per address count under: a host has a whole IPv6 /64 to itself, so it is counted as one. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const tailGroups = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - tailGroups.length)
  return [...groups, ...Array<string>(zeros).fill('0'), ...tailGroups].slice(0, 4).join(':')
}
