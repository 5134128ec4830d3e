// The one written form of an IP address, for exact comparison.
import ipaddr from 'ipaddr.js'

/** IPv4 out of IPv6's mapping, IPv6 compressed and in lower case; what is no address stays as it is. */
export function writtenAddress(ip: string): string {
  return ip.includes(':') && ipaddr.isValid(ip) ? ipaddr.process(ip).toString() : ip
}
