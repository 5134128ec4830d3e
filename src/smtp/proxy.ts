// The PROXY protocol's first version: the line in which a load balancer names the peer behind it.
import { isIP } from 'node:net'
import { canonicalAddress } from './peer-address.ts'

/** The peer named by a line without its CRLF; `unknown` where the balancer does not say, null when it is malformed. */
export function parseProxyLine(line: string): { address: string; port: number } | 'unknown' | null {
  if (line.length > 105) return null
  if (/^PROXY UNKNOWN(?: |$)/.test(line)) return 'unknown'
  const [, family, address = '', port] =
    /^PROXY TCP([46]) ([0-9A-Fa-f.:]+) \S+ (\d{1,5}) \d{1,5}$/.exec(line) ?? []
  if (isIP(address) !== Number(family) || Number(port) > 65_535) return null
  return { address: canonicalAddress(address), port: Number(port) }
}
