// Types and rules that the roles of a node share: how they stop, their grace period, and their own domain.
import type { Clock } from '../base/clock.ts'
import { RecentlyUsed } from '../base/recently-used.ts'
import { divided } from '../base/share.ts'
import type { Settings } from '../config/settings.ts'
import { isPublicUnicast } from '../dns/public-address.ts'
import type { RoutePolicy } from '../flow/route-policy.ts'
import { poolChoice } from '../flow/source-pools.ts'
import type { Foundation } from '../foundation.ts'

/** A running part. Parts stop in the reverse order of their start. */
export interface Part {
  stop(): Promise<void>
}

/** How long work in flight may still take when the node stops. */
export const graceMs = 20_000

/** Mail that waits for longer is read back from the database. */
const cachedMs = 60_000

export interface MailCacheOptions {
  /** The entries and bytes of all workers together. */
  maxEntries: number
  maxBytes: number
  workers: number
  clock: Clock
}

/** Returns a cache of accepted mail. It drops mail after a minute, because another node may have done the work on it. */
export function createMailCache<Value>(options: MailCacheOptions): RecentlyUsed<Value> {
  const { maxEntries, maxBytes, workers, clock } = options
  return new RecentlyUsed({
    maxEntries: divided(maxEntries, workers),
    maxBytes: divided(maxBytes, workers),
    idle: { clock, ms: cachedMs },
  })
}

/** Returns a check of whether a domain is the deployment's own. */
export function isLocal({ managedDomain }: Settings): (domain: string) => boolean {
  return (domain) => domain === managedDomain
}

/** Returns how the queue of a mail is chosen. */
export function createRoutePolicy({
  settings,
  deliveryRules,
}: Pick<Foundation, 'settings' | 'deliveryRules'>): RoutePolicy {
  const { pools } = deliveryRules()
  return { mode: settings.delivery, isLocal: isLocal(settings), choosePool: poolChoice(pools) }
}

/** Returns a check of whether mail may go to an IP address. */
export function allowsMailTo({ allowPrivateNetworks }: Settings): (ip: string) => boolean {
  return (ip) => allowPrivateNetworks || isPublicUnicast(ip)
}
