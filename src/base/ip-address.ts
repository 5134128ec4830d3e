// IP addresses: their canonical text, the networks by which limits count them, and ranges.
import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Returns the form in which addresses are compared. IPv4-mapped IPv6 becomes IPv4. IPv6 is compressed, in lower case and
 * without the zone of a link-local address. Any other text is returned unchanged.
 */
export function writtenAddress(ip: string): string {
  if (!ip.includes(':')) return ip
  const address = ip.replace(/%.*$/, '')
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : ip
}

/** Returns the smallest network that may be one host: the IPv4 address itself, or an IPv6 /64. Takes the written form. */
export function networkOf(address: string): string {
  return isIPv6(address) ? prefixOf(address, 4) : address
}

/** Returns the network that a customer of a provider may have: an IPv4 /24 or an IPv6 /48. Takes the written form. */
export function wideNetworkOf(address: string): string {
  return isIPv6(address) ? prefixOf(address, 3) : `${address.replace(/\.\d+$/, '')}.0/24`
}

/** Works on text alone, for speed: the SMTP server calls it several times per message. */
function prefixOf(address: string, groups: number): string {
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const all = [...first, ...Array<string>(zeros).fill('0'), ...last]
  return `${all.slice(0, groups).join(':')}::/${groups * 16}`
}

/** Returns a test whether an address, such as a socket's, is in one of the ranges (CIDRs). */
export function inRanges(cidrs: readonly string[]): (ip: string) => boolean {
  const ranges = cidrs.map((cidr) => ipaddr.parseCIDR(cidr))
  return (ip) => {
    const address = ipaddr.process(writtenAddress(ip))
    return ranges.some((range) => address.kind() === range[0].kind() && address.match(range))
  }
}
