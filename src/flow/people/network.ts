// The network that an address counts as: what one customer of a provider has.
import ipaddr from 'ipaddr.js'

/** An IPv4 address itself; of IPv6 the /64, out of which one host can take any address. What is no address stays as it is. */
export function networkOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip
  const address = ipaddr.process(ip)
  if (address.kind() === 'ipv4') return address.toString()
  const first = address.toByteArray().slice(0, 8)
  return `${ipaddr.fromByteArray([...first, 0, 0, 0, 0, 0, 0, 0, 0]).toString()}/64`
}
