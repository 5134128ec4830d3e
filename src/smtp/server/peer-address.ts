// A peer's IP address in the one form that the rest of the house sees, and the network it is counted under.
import { isIPv6 } from 'node:net'

/** IPv4-mapped addresses as IPv4, without the zone of a link-local one. */
export function canonicalAddress(address: string): string {
  return address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '')
}

/**
 * What limits count an address under: itself and its /24, or its IPv6 /64, which is a host's own, and its /48, which is
 * what a customer of a provider has.
 */
export function networksOf(address: string): [own: string, network: string] {
  if (!isIPv6(address)) return [address, `${address.replace(/\.\d+$/, '')}.0/24`]
  const groups = groupsOf(address)
  return [`${groups.slice(0, 4).join(':')}::/64`, `${groups.slice(0, 3).join(':')}::/48`]
}

function groupsOf(address: string): string[] {
  const [head = '', tail] = address.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const tailGroups = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - tailGroups.length)
  return [...groups, ...Array<string>(zeros).fill('0'), ...tailGroups]
}
