// Decides which DNS servers may report that signatures prove an answer.
import { inRanges } from '../base/ip-address.ts'

const ownMachine = inRanges(['127.0.0.0/8', '::1/128'])
/**
 * QUIRK: the resolver of Docker is on loopback, but relays the flags of a server elsewhere
 * (https://docs.docker.com/engine/network/#dns-services). Anyone on the path to that server could set AD.
 */
const relayingAddress = '127.0.0.11'

/** Returns a test whether the AD flag of a server is believed: on this machine, or in one of these ranges (CIDRs). */
export function trustedResolvers(cidrs: readonly string[]): (ip: string) => boolean {
  const isNamed = inRanges(cidrs)
  return (ip) => isNamed(ip) || (ip !== relayingAddress && ownMachine(ip))
}
