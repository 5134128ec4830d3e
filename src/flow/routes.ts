// Which destination queue a recipient's mail goes to: the next hop decides.

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
