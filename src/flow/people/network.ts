// The networks that an address counts as: what one customer of a provider has, and what a larger one does.
import ipaddr from 'ipaddr.js'

/** An IPv4 address itself; of IPv6 the /64, out of which one host can take any address. What is no address stays as it is. */
export function networkOf(ip: string): string {
  return prefixOf(ip, { ipv4: 32, ipv6: 64 })
}

/** IPv4 /24 and IPv6 /48: who has one has many of the smaller ones. */
export function wideNetworkOf(ip: string): string {
  return prefixOf(ip, { ipv4: 24, ipv6: 48 })
}

function prefixOf(ip: string, bits: { ipv4: number; ipv6: number }): string {
  if (!ipaddr.isValid(ip)) return ip
  const address = ipaddr.process(ip)
  const length = bits[address.kind()]
  const bytes = address.toByteArray().map((byte, index) => (index * 8 < length ? byte : 0))
  return `${ipaddr.fromByteArray(bytes).toString()}/${length}`
}
