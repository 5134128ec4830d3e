// The parts of a deployment that outgoing mail passes, as the doctor reads them. Tests pass parts of their own.
import type { Clock } from '../../base/clock.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Settings } from '../../config/settings.ts'
import type { Resolver } from '../../dns/resolver.ts'
import type { PolicyFetcher } from '../../flow/delivering/fetch-policy.ts'
import type { SendingIdentities } from '../../flow/delivering/sending-identity.ts'
import type { SourcePool } from '../../flow/source-pools.ts'
import type { ManagedDomain } from './dns.ts'

export interface Chain {
  settings: Settings
  resolver: Pick<Resolver, 'resolve'>
  clock: Clock
  identities: Pick<SendingIdentities, 'of'>
  /** Customers' domains that mail may be sent from: some of them, if there are many. */
  customers: { organizationId: OrganizationId; name: string }[]
  managed: ManagedDomain
  fetcher: Pick<PolicyFetcher, 'fetch'>
  pools: readonly SourcePool[]
}
