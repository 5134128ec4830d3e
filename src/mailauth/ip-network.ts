// IP addresses as bytes: whether one is in a network, and the name under which DNS has it in reverse.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** 4 bytes or 16, in network order. */
export type IpBytes = readonly number[]

/** The bytes of an address in its usual written form; null for anything else, zones such as `%eth0` among it. */
export function parseIp(text: string): IpBytes | null {
  if (isIP(text) === 0 || text.includes('%')) return null
  return ipaddr.parse(text).toByteArray()
}

/** The bytes of a client's address, which are 4 for IPv4 in IPv6's mapping too. Throws on what is no address: our bug. */
export function clientIp(text: string): IpBytes {
  if (isIP(text) === 0) throw new Error('the address of a client is no IP address')
  return ipaddr.process(text).toByteArray()
}

/** The written form: dotted, or compressed and in lower case. */
export function writeIp(ip: IpBytes): string {
  return ipaddr.fromByteArray([...ip]).toString()
}

/** Whether the first `prefixBits` bits are those of the network; never for addresses of different kinds. */
export function isInNetwork(ip: IpBytes, network: IpBytes, prefixBits: number): boolean {
  if (ip.length !== network.length) return false
  return ip.every((byte, index) => {
    const bits = Math.min(8, Math.max(0, prefixBits - index * 8))
    return (byte ^ network[index]!) >> (8 - bits) === 0
  })
}

/** The parts that DNS names an address by, most significant first: decimal bytes, or hexadecimal digits. */
export function reverseParts(ip: IpBytes): string[] {
  if (ip.length === 4) return ip.map(String)
  return ip.flatMap((byte) => [(byte >> 4).toString(16), (byte & 15).toString(16)])
}

/** `4.3.2.1.in-addr.arpa`, or 32 digits and `ip6.arpa`. */
export function reverseName(ip: IpBytes): string {
  return `${reverseParts(ip).reverse().join('.')}.${ip.length === 4 ? 'in-addr' : 'ip6'}.arpa`
}
