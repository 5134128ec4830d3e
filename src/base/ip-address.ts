// IP addresses: their one written form, the networks that limits count them under, and ranges of them.
import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * The form in which addresses are compared: IPv4 instead of IPv6's mapping of it, IPv6 compressed, in lower case and
 * without the zone of a link-local one. Anything else is returned as it is.
 */
export function writtenAddress(ip: string): string {
  if (!ip.includes(':')) return ip
  const address = ip.replace(/%.*$/, '')
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : ip
}

/** The smallest network that may be one host: an IPv4 address itself, or an IPv6 /64. The address is in its written form. */
export function networkOf(address: string): string {
  return isIPv6(address) ? prefixOf(address, 4) : address
}

/** The network that a customer of a provider may have: an IPv4 /24 or an IPv6 /48. The address is in its written form. */
export function wideNetworkOf(address: string): string {
  return isIPv6(address) ? prefixOf(address, 3) : `${address.replace(/\.\d+$/, '')}.0/24`
}

/** By text alone: the SMTP server asks several times for each message. */
function prefixOf(address: string, groups: number): string {
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const all = [...first, ...Array<string>(zeros).fill('0'), ...last]
  return `${all.slice(0, groups).join(':')}::/${groups * 16}`
}

/** Whether an address, of a socket for instance, is in one of the ranges (CIDRs). */
export function inRanges(cidrs: readonly string[]): (ip: string) => boolean {
  const ranges = cidrs.map((cidr) => ipaddr.parseCIDR(cidr))
  return (ip) => {
    const address = ipaddr.process(writtenAddress(ip))
    return ranges.some((range) => address.kind() === range[0].kind() && address.match(range))
  }
}
