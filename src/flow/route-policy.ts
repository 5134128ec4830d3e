// Chooses the destination queue of a recipient's mail by its next hop.
import type { Clock } from '../base/clock.ts'
import type { Db } from '../postgres/db.ts'
import type { ProvedDomain } from '../store/domains/domain-use.ts'
import { moveToRoutes } from '../store/sending/deliveries.ts'

export type DeliveryMode = 'direct' | 'relay' | 'capture'

/** Queues that do not belong to a single domain. */
export const specialRoutes = { local: '@local', relay: '@relay', capture: '@capture' } as const

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
  const isInside = route === specialRoutes.local || route === specialRoutes.capture
  return isInside ? [...insideStepsMs.filter((stepMs) => stepMs < scheduleMs[0]!), ...scheduleMs] : scheduleMs
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
