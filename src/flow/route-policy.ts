// Chooses the destination queue of a recipient's mail by its next hop.
import type { Clock } from '../base/clock.ts'
import type { Db } from '../postgres/db.ts'
import type { ProvedDomain } from '../store/domains/domain-use.ts'
import { moveToRoutes } from '../store/sending/deliveries.ts'

export type DeliveryMode = 'direct' | 'relay' | 'capture'

/** Queues that do not belong to a single domain. */
export const specialRoutes = { local: '@local', relay: '@relay', capture: '@capture' } as const

/** The TLS that a sender asks for in place of the recipients' policies (RFC 8689): more, or none. */
export type TlsWish = 'required' | 'optional'

const wishPrefixes = { required: 'requiretls:', optional: 'anytls:' } as const

export interface RoutePolicy {
  mode: DeliveryMode
  /** The deployment's own domain, whose mail goes to our own MX. */
  isLocal(domain: string): boolean
}

/** Within these waits a stopped node of ours is back, or another node takes its mail. */
const insideStepsMs = [1_000, 5_000, 15_000]

/**
 * The waits between attempts of a queue's mail. Mail within this deployment waits less at first. Nodes are updated one by
 * one, so a stopped node of ours is back sooner than a foreign server.
 */
export function retryScheduleOf(route: string, scheduleMs: readonly number[]): readonly number[] {
  const { hop } = readRoute(route)
  const isInside = hop === specialRoutes.local || hop === specialRoutes.capture
  return isInside ? [...insideStepsMs.filter((stepMs) => stepMs < scheduleMs[0]!), ...scheduleMs] : scheduleMs
}

/** Returns the queue of mail with this wish. A demand stays with mail for our own nodes, as its domain may leave them. */
export function routeFor(route: string, wish: TlsWish | null): string {
  // The operator says what TLS a smarthost needs. The field TLS-Required stays in the mail.
  const isMoot = wish === 'optional' && route.startsWith('@')
  return wish === null || isMoot ? route : wishPrefixes[wish] + route
}

/** The queue and those of mail for the same next hop with a wish. */
export function withWishes(route: string): string[] {
  return [route, ...Object.values(wishPrefixes).map((prefix) => prefix + route)]
}

/** Reads the key of a queue. `hop`: the domain or the special queue without the wish. */
export function readRoute(key: string): { hop: string; wish: TlsWish | null } {
  for (const wish of ['required', 'optional'] as const) {
    const prefix = wishPrefixes[wish]
    if (key.startsWith(prefix)) return { hop: key.slice(prefix.length), wish }
  }
  return { hop: key, wish: null }
}

/** The queue's key for a recipient's domain. A customer's domain is local only if its MX is proved to be ours. */
export function routeOf(policy: RoutePolicy, domain: string, proved: ProvedDomain | null): string {
  if (policy.isLocal(domain) || proved?.canReceive) return specialRoutes.local
  return policy.mode === 'direct' ? domain : specialRoutes[policy.mode]
}

/**
 * Moves mail from queues of another delivery mode, and of domains whose MX became ours or ceased to be. Returns the count.
 */
export async function moveDeliveries(
  { db, clock }: { db: Db; clock: Clock },
  mode: DeliveryMode,
  localDomain: string,
): Promise<number> {
  return await moveToRoutes(
    db.writer,
    mode === 'direct' ? null : specialRoutes[mode],
    localDomain,
    clock.now(),
  )
}
