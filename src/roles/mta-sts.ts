// MTA-STS of the domains that mail goes to, on a node: deliveries ask for policies, and the jobs refresh them.
import { PolicyFetcher } from '../flow/delivering/fetch-policy.ts'
import { MtaSts, type MtaStsDeps, refreshPolicies } from '../flow/delivering/mta-sts.ts'
import type { Foundation } from '../foundation.ts'
import { Loop } from '../worker/loop.ts'
import type { Part } from './part.ts'
import { createAddressGuard, findAddresses } from './webhooks.ts'

const refreshIntervalMs = 60_000
/** Policies fetched at once. */
const refreshBatch = 10

/** Builds the parts that look up policies. Close the fetcher at the end. */
export function createStsDeps({ settings, db, clock, log, resolver: shared }: Foundation): MtaStsDeps & {
  fetcher: PolicyFetcher
} {
  const resolver = shared.for('mta-sts')
  const lookup = (host: string) => findAddresses(resolver, host)
  return {
    db,
    clock,
    log,
    resolver,
    fetcher: new PolicyFetcher({ guard: createAddressGuard(settings), lookup }),
  }
}

/** The policies for a node's deliveries. */
export function createMtaSts(foundation: Foundation): { rules: MtaSts; stop(): Promise<void> } {
  const deps = createStsDeps(foundation)
  return { rules: new MtaSts(deps), stop: () => deps.fetcher.close() }
}

/** Starts to refresh the policies of domains in use. Mail that leaves by a relay needs none. */
export function startRefreshing(foundation: Foundation): Part {
  const deps = createStsDeps(foundation)
  const stopping = new AbortController()
  const run = () => refreshPolicies(deps, refreshBatch, stopping.signal)
  const loop = new Loop({ name: 'refresh mta-sts', run, intervalMs: refreshIntervalMs, log: foundation.log })
  if (foundation.settings.delivery === 'direct') loop.start()
  return {
    stop: async () => {
      stopping.abort()
      await loop.stop()
      await deps.fetcher.close()
    },
  }
}
