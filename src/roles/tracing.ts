// Builds the parts of a deployment that a trace of a delivery reads.
import type { TraceDeps } from '../flow/delivering/trace-delivery.ts'
import { ProvedDomains } from '../flow/proved-domains.ts'
import type { Foundation } from '../foundation.ts'
import { createStsDeps } from './mta-sts.ts'
import { createNextHop } from './next-hop.ts'
import { createRoutePolicy } from './part.ts'

export function openTracing(foundation: Foundation): { deps: TraceDeps; close(): Promise<void> } {
  const { db, clock } = foundation
  const policies = createStsDeps(foundation)
  const deps = {
    policies,
    domains: new ProvedDomains({ db, clock }),
    routePolicy: createRoutePolicy(foundation),
    nextHop: createNextHop(foundation, null),
    rules: foundation.deliveryRules(),
  }
  return { deps, close: () => policies.fetcher.close() }
}
