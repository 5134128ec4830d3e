// Types and rules that the roles of a node share: how they stop, their grace period, and their own domain.
import type { Settings } from '../config/settings.ts'
import { isPublicUnicast } from '../dns/public-address.ts'

/** A running part. Parts stop in the reverse order of their start. */
export interface Part {
  stop(): Promise<void>
}

/** How long work in flight may still take when the node stops. */
export const graceMs = 20_000

/** Returns a check of whether a domain is the deployment's own. */
export function isLocal({ managedDomain }: Settings): (domain: string) => boolean {
  return (domain) => domain === managedDomain
}

/** Returns a check of whether mail may go to an IP address. */
export function allowsMailTo({ allowPrivateNetworks }: Settings): (ip: string) => boolean {
  return (ip) => allowPrivateNetworks || isPublicUnicast(ip)
}
