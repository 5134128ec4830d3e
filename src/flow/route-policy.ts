// Which destination queue a recipient's mail goes to: the next hop decides.
import type { Clock } from '../base/clock.ts'
import type { Db } from '../postgres/db.ts'
import type { ProvedDomain } from '../store/domains/domain-use.ts'
import { moveToRoutes } from '../store/sending/deliveries.ts'

export type DeliveryMode = 'direct' | 'relay' | 'capture'

/** Queues that are not a domain's own. */
export const specialRoutes = { local: '@local', relay: '@relay', capture: '@capture' } as const

export interface RoutePolicy {
  mode: DeliveryMode
  /** The deployment's own domain, whose mail goes to our own MX. */
  isLocal(domain: string): boolean
}

/** A node of ours that stops is back by then, or another takes its mail. */
const insideStepsMs = [1_000, 5_000, 15_000]

/**
 * The waits between attempts of a queue's mail. Mail that does not leave this deployment is tried by shorter ones first:
 * nodes are updated one by one, and the way to one that stops is not blocked for as long as the way to a stranger.
 */
export function retryScheduleOf(route: string, scheduleMs: readonly number[]): readonly number[] {
  const isInside = route === specialRoutes.local || route === specialRoutes.capture
  return isInside ? [...insideStepsMs.filter((stepMs) => stepMs < scheduleMs[0]!), ...scheduleMs] : scheduleMs
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
