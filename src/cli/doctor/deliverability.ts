// `posthorn doctor --deliverability`: the chain of outgoing mail, from the source address to a trial mail of each domain.
import { silentLog } from '../../base/log.ts'
import type { Settings } from '../../config/settings.ts'
import { isPublicUnicast } from '../../dns/public-address.ts'
import { Resolver } from '../../dns/resolver.ts'
import { trustedResolvers } from '../../dns/trusted-resolvers.ts'
import { systemSourceTo } from '../../flow/delivering/outbound.ts'
import { SendingIdentities } from '../../flow/delivering/sending-identity.ts'
import { listManagedKeys } from '../../flow/domains/managed-keys.ts'
import { ownOrganizationId } from '../../flow/own-organization.ts'
import { ProvedDomains } from '../../flow/proved-domains.ts'
import type { Foundation } from '../../foundation.ts'
import { createStsDeps } from '../../roles/mta-sts.ts'
import { listSendingDomains } from '../../store/domains/domain-use.ts'
import { checkListings } from './blocklists.ts'
import type { Chain } from './chain.ts'
import { type Check, failed, ok, skipped, warning } from './checks.ts'
import { checkRecords, expectedRecords } from './dns.ts'
import { checkNames, checkOutbound, checkWayOut, findSources } from './outbound.ts'
import { checkOwnServer, checkPolicies } from './own-server.ts'
import { checkOwnSources, checkSourceNames, findSeenSources } from './pools.ts'
import { checkEhloName, checkTrialMail } from './trial-mail.ts'

/** Each customer's domain takes up to 100 questions of DNS. */
const maxCustomers = 20
/** An address outside any network of ours (RFC 5737), to which nothing is sent. */
const outside = { ipv4: '198.51.100.1', ipv6: '2001:db8::1' }

/** Checks the chain of a deployment. */
export async function examineDeliverability(foundation: Foundation): Promise<Check[]> {
  const { settings, db, clock, secretBox } = foundation
  const isTrusted = trustedResolvers(settings.dnsTrusted)
  const { managedDomain } = settings
  const domains = new ProvedDomains({ db, clock })
  const { fetcher } = createStsDeps(foundation)
  try {
    return await checkChain({
      settings,
      clock,
      fetcher,
      resolver: new Resolver({ servers: settings.dnsServers, isTrusted, timeoutMs: 2_000, tries: 2 }),
      identities: new SendingIdentities({ db, clock, log: silentLog, secretBox, domains, managedDomain }),
      customers: await listSendingDomains(db, maxCustomers),
      pools: foundation.deliveryRules().pools,
      managed: expectedRecords(settings, await listManagedKeys(db, managedDomain)),
    })
  } finally {
    await fetcher.close()
  }
}

/** The checks in the order in which a receiver meets what they check. */
export async function checkChain(chain: Chain): Promise<Check[]> {
  const { settings, resolver, managed } = chain
  const { delivery, isDevelopment } = settings
  if (delivery === 'capture') return [skipped('delivery', 'no mail leaves this deployment (capture)')]
  const received = [await checkOwnServer(settings, resolver), ...(await checkPolicies(chain))]
  const wayOut = await checkWayOut(settings, resolver)
  // By a smarthost, receivers see its address and its name.
  if (delivery === 'relay') return [...wayOut, ...(await checkDomains(chain, [])), ...received]
  if (isDevelopment)
    return [...wayOut, skipped('names', 'POSTHORN_MAIL_HOST is unset: development has no name in DNS')]
  const { seen, ...published } = await findSources(settings, resolver)
  const sources = await checkSources(settings, published, seen)
  const names = await checkNames(settings, resolver)
  const open = seen.filter(isPublicUnicast)
  const pooled = [...(await checkOwnSources(chain.pools)), ...(await checkSourceNames(chain))]
  const everywhere = [...new Set([...open, ...(await findSeenSources(chain))])]
  const ehlo = await Promise.all(open.map((ip) => checkEhloName(settings.mailHost, ip, chain)))
  const listed = await checkListings(settings, open, (type, name) => resolver.resolve(type, name))
  const records = await checkRecords(managed, resolver)
  return [
    ...[...(await checkOutbound(settings)), ...sources, ...names, ...ehlo, ...pooled],
    ...[...records, ...(await checkDomains(chain, everywhere)), ...listed, ...wayOut, ...received],
  ]
}

/** Whether receivers can reach the addresses back, and whether the system sends from one of them. */
async function checkSources(
  { outbound, mailHost }: Settings,
  { four, six }: { four: string[]; six: string[] },
  seen: string[],
): Promise<Check[]> {
  const name = 'source address'
  const publish = `publish: ${mailHost} A <the public address that mail leaves from>`
  if (seen.length === 0)
    return [failed(name, `${mailHost} has no address in DNS: receivers refuse its mail`, publish)]
  const checks = seen.map((ip) =>
    isPublicUnicast(ip)
      ? ok(name, `${ip} is public`)
      : failed(name, `${ip} is not a public address`, publish),
  )
  const chosen = [
    outbound.ipv4 === null ? await unpublished(outside.ipv4, four, mailHost) : null,
    outbound.ipv6 === null ? await unpublished(outside.ipv6, six, mailHost) : null,
  ]
  return [...checks, ...chosen.filter((check) => check !== null)]
}

/** A failure if the system sends from a public address that the mail host does not have. */
async function unpublished(target: string, published: string[], mailHost: string): Promise<Check | null> {
  const source = await systemSourceTo(target)
  // A private address is behind a NAT. Its public address cannot be seen from here.
  if (source === null || !isPublicUnicast(source) || published.includes(source)) return null
  const type = source.includes(':') ? 'AAAA' : 'A'
  const reason = `the system sends from ${source}, which is not an address of ${mailHost}: SPF and reverse DNS fail`
  return failed(
    'source address',
    reason,
    `publish: ${mailHost} ${type} ${source}; or set POSTHORN_OUTBOUND_IP`,
  )
}

/** One trial mail of the managed domain and of each customer's domain, from each source address. */
async function checkDomains(chain: Chain, sources: readonly string[]): Promise<Check[]> {
  const { settings, customers } = chain
  const own = { organizationId: ownOrganizationId, name: settings.managedDomain }
  const checks: Check[] = []
  for (const [index, domain] of [own, ...customers].entries())
    checks.push(...(await checkTrialMail(chain, domain, sources, index === 0 ? 'managed' : 'customer')))
  if (customers.length < maxCustomers) return checks
  return [
    ...checks,
    warning(
      'trial mail',
      `only the first ${maxCustomers} customers’ domains were tried`,
      'check the others at GET /v1/domains/{domainId}',
    ),
  ]
}
