// From which addresses of this machine mail leaves.
import { isIPv6 } from 'node:net'
import { isLoopback } from '../../webhook/address-guard.ts'

/** One of each family at most; null: the system chooses. */
export interface OutboundAddresses {
  ipv4: string | null
  ipv6: string | null
}

/** What a connection to `target` is bound to; undefined: the system chooses. */
export function sourceFor({ ipv4, ipv6 }: OutboundAddresses, target: string): string | undefined {
  const source = isIPv6(target) ? ipv6 : ipv4
  // A smarthost on this machine knows us by the address of loopback, and trusts no other.
  if (source === null || (isLoopback(target) && !isLoopback(source))) return undefined
  return source
}
