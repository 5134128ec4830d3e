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
  /** The pool of source addresses for a mail of this purpose. Null: it leaves as if there were no pools. */
  choosePool(organizationId: string, purpose: string): string | null
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

/**
 * Returns the queue of mail with this wish that leaves from this pool of source addresses. A demand stays with mail for our
 * own nodes, as its domain may leave them. A pool counts only for mail to servers of other domains.
 */
export function routeFor(route: string, wish: TlsWish | null, pool: string | null = null): string {
  const isSpecial = route.startsWith('@')
  const pooled = pool === null || isSpecial ? route : `${pool}:${route}`
  // The operator says what TLS a smarthost needs. The field TLS-Required stays in the mail.
  const isMoot = wish === 'optional' && isSpecial
  return wish === null || isMoot ? pooled : wishPrefixes[wish] + pooled
}

/** The queue and those of mail for the same next hop with a wish. */
export function withWishes(route: string): string[] {
  return [route, ...Object.values(wishPrefixes).map((prefix) => prefix + route)]
}

/** Names that no pool may have, because they begin the keys of queues. */
export const reservedPools: readonly string[] = Object.values(wishPrefixes).map((prefix) =>
  prefix.slice(0, -1),
)

/**
 * Reads the key of a queue: `hop`, `POOL:hop`, and either of them with a wish before it. `hop`: the domain or the special
 * queue.
 */
export function readRoute(key: string): { hop: string; wish: TlsWish | null; pool: string | null } {
  const wish = (['required', 'optional'] as const).find((one) => key.startsWith(wishPrefixes[one])) ?? null
  const rest = wish === null ? key : key.slice(wishPrefixes[wish].length)
  const colon = rest.indexOf(':')
  return { hop: rest.slice(colon + 1), wish, pool: colon < 0 ? null : rest.slice(0, colon) }
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
