// The MTA-STS policy of a host: for our own domain, and for customers' domains with proved ownership and MX.
import { domainOfPolicyHost, type MtaStsMode, writePolicy } from '../../dns/mta-sts.ts'
import { parseDomain } from '../../mail/address.ts'
import type { ProvedDomains } from '../proved-domains.ts'

export interface PolicyDeps {
  domains: Pick<ProvedDomains, 'find'>
  managedDomain: string
  mailHost: string
  mtaStsMode(): MtaStsMode
}

/** The text of the policy at this host, which is a Host field without its port. Null if there is none. */
export async function readMtaStsPolicy(deps: PolicyDeps, host: string): Promise<string | null> {
  const { domains, managedDomain, mailHost, mtaStsMode } = deps
  const domain = domainOfPolicyHost(parseDomain(host) ?? '')
  if (domain === null) return null
  const isReceived = domain === managedDomain || (await domains.find(domain))?.canReceive === true
  return isReceived ? writePolicy(mailHost, mtaStsMode()) : null
}
