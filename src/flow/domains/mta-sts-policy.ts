// The MTA-STS policy that a host shows: of our own domain, and of customers' domains whose ownership and MX are proved.
import { domainOfPolicyHost, type MtaStsMode, writePolicy } from '../../dns/mta-sts.ts'
import { parseDomain } from '../../mail/address.ts'
import type { ProvedDomains } from '../proved-domains.ts'

export interface PolicyDeps {
  domains: Pick<ProvedDomains, 'find'>
  managedDomain: string
  mailHost: string
  mtaStsMode(): MtaStsMode
}

/** The text of the policy at this host, a Host field without its port; null where it has none. */
export async function readMtaStsPolicy(deps: PolicyDeps, host: string): Promise<string | null> {
  const { domains, managedDomain, mailHost, mtaStsMode } = deps
  const domain = domainOfPolicyHost(parseDomain(host) ?? '')
  if (domain === null) return null
  const isReceived = domain === managedDomain || (await domains.find(domain))?.inbound === true
  return isReceived ? writePolicy(mailHost, mtaStsMode()) : null
}
