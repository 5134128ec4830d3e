// Which destination queue a recipient's mail goes to: the next hop decides.
import type { Clock } from '../base/clock.ts'
import type { Db } from '../postgres/db.ts'
import { moveToRoutes } from '../store/deliveries.ts'
import type { ProvedDomain } from '../store/domain-use.ts'

export type DeliveryMode = 'direct' | 'relay' | 'capture'

/** Queues that are not a domain's own. */
export const specialRoutes = { local: '@local', relay: '@relay', capture: '@capture' } as const

export interface RoutePolicy {
  mode: DeliveryMode
  /** The deployment's own domain, whose mail goes to our own MX. */
  isLocal(domain: string): boolean
}

/** The key of the queue for a recipient's domain; a customer's is local only where its MX is proved to be ours. */
export function routeOf(policy: RoutePolicy, domain: string, proved: ProvedDomain | null): string {
  if (policy.isLocal(domain) || proved?.inbound) return specialRoutes.local
  return policy.mode === 'direct' ? domain : specialRoutes[policy.mode]
}

/** Moves what waits in queues of another delivery mode, or of domains whose MX is ours only now or no more; returns how much. */
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
