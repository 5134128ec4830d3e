// Which destination queue a recipient's mail goes to: the next hop decides.
import type { Clock } from '../base/clock.ts'
import type { Db } from '../store/db.ts'
import { moveToRoutes } from '../store/deliveries.ts'

export type DeliveryMode = 'direct' | 'relay' | 'capture'

/** Queues that are not a domain's own. */
export const specialRoutes = { local: '@local', relay: '@relay', capture: '@capture' } as const

export interface RoutePolicy {
  mode: DeliveryMode
  /** Domains whose mail goes to our own MX. */
  isLocal(domain: string): boolean
}

/** The key of the queue for a recipient's domain. */
export function routeOf(policy: RoutePolicy, domain: string): string {
  if (policy.isLocal(domain)) return specialRoutes.local
  return policy.mode === 'direct' ? domain : specialRoutes[policy.mode]
}

/** Moves what waits in queues of another delivery mode, or of domains that were not ours; answers how much. */
export async function moveDeliveries(
  { db, clock }: { db: Db; clock: Clock },
  mode: DeliveryMode,
  localDomains: string[],
): Promise<number> {
  return await moveToRoutes(db, mode === 'direct' ? null : specialRoutes[mode], localDomains, clock.now())
}
