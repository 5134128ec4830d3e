// The doctor's checks of the mail server that answers and bounces come to: its TLS, and the policies that protect it.
import type { Settings } from '../../config/settings.ts'
import { policyHostOf } from '../../dns/mta-sts.ts'
import { HopFinder } from '../../dns/mx.ts'
import type { Resolver } from '../../dns/resolver.ts'
import { namesHost, readStsId } from '../../mailauth/mta-sts.ts'
import { allowsMailTo } from '../../roles/part.ts'
import { connect } from '../../smtp/client/client.ts'
import type { Chain } from './chain.ts'
import { type Check, failed, ok, skipped, warning } from './checks.ts'

type Dns = Pick<Resolver, 'resolve'>

const stepMs = 5_000
const fetchMs = 10_000

/** Connects to the MX of the managed domain, and verifies its certificate as senders do that enforce MTA-STS. */
export async function checkOwnServer(settings: Settings, resolver: Dns): Promise<Check> {
  const name = 'own mail server'
  const { managedDomain, mailHost, mxPort, isDevelopment } = settings
  if (isDevelopment) return skipped(name, 'not tried in development')
  const hops = await new HopFinder({ resolver, isAllowed: allowsMailTo(settings) }).find(managedDomain)
  const [host] = hops.status === 'ok' ? hops.hosts : []
  if (!host)
    return failed(name, `${managedDomain} has no mail server`, `publish: ${managedDomain} MX 10 ${mailHost}`)
  const opened = await connect({
    host: host.name,
    address: host.addresses[0]!,
    port: mxPort,
    ehloName: mailHost,
    tls: 'opportunistic',
    requirement: { kind: 'mta-sts', mode: 'testing', isListed: true },
    timeouts: { connectMs: stepMs, bannerMs: stepMs, ehloMs: stepMs },
  })
  const where = `${host.name} [${host.addresses[0]}]:${mxPort}`
  if (!('connection' in opened)) {
    const mend = 'check from another network: some networks do not let a machine reach its own public address'
    return warning(name, `${where}: ${opened.fault.message}`, mend)
  }
  const { tls, violation } = opened.connection.remote
  await opened.connection.quit()
  if (violation === undefined) return ok(name, `${where}: ${tls}, its certificate is valid`)
  return warning(
    name,
    `${where}: ${violation.replace(/^[^:]*: /, '')}`,
    'set POSTHORN_ACME, or POSTHORN_SMTP_TLS_CERT',
  )
}

/** Hints: whether senders learn that mail to the managed domain must come over TLS, and where to report failures. */
export async function checkPolicies({ settings, resolver, fetcher }: Chain): Promise<Check[]> {
  if (settings.isDevelopment) return []
  return [await checkMtaSts(settings, resolver, fetcher), await checkTlsReports(settings, resolver)]
}

async function checkMtaSts(
  { managedDomain, mailHost }: Settings,
  resolver: Dns,
  fetcher: Chain['fetcher'],
): Promise<Check> {
  const name = 'MTA-STS'
  const record = `_mta-sts.${managedDomain}`
  const answer = await resolver.resolve('TXT', record)
  const publish = `publish: ${record} TXT "v=STSv1; id=1", and ${policyHostOf(managedDomain)} CNAME ${mailHost}`
  if (answer.status === 'temporary') return warning(name, `${record}: ${answer.reason}`, 'try again later')
  if (answer.status !== 'ok' || readStsId(answer.records) === null)
    return warning(name, `${record} has no policy: senders may fall back to no TLS`, publish)
  const found = await fetcher.fetch(managedDomain, AbortSignal.timeout(fetchMs))
  const host = policyHostOf(managedDomain)
  if ('fault' in found)
    return failed(
      name,
      `${record} exists, but ${host}: ${found.fault}`,
      `let https://${host} reach POSTHORN_HTTPS`,
    )
  const { policy } = found
  if (policy.mode !== 'none' && !namesHost(policy, mailHost))
    return failed(
      name,
      `the policy of ${managedDomain} does not name ${mailHost}`,
      `add mx: ${mailHost} to it`,
    )
  return ok(name, `${managedDomain}: ${policy.mode}, ${policy.mx.join(', ')}`)
}

async function checkTlsReports({ managedDomain, mailHost }: Settings, resolver: Dns): Promise<Check> {
  const name = 'TLS reports'
  const record = `_smtp._tls.${managedDomain}`
  const answer = await resolver.resolve('TXT', record)
  // RFC 8460 3: the version comes first.
  const found =
    answer.status === 'ok' ? answer.records.find((text) => /^v=TLSRPTv1\s*;/.test(text)) : undefined
  if (found !== undefined) return ok(name, `${record} has "${found}"`)
  const reason =
    answer.status === 'temporary' ? answer.reason : 'no domain learns where to report failures of TLS'
  return warning(
    name,
    `${record}: ${reason}`,
    `publish: ${record} TXT "v=TLSRPTv1; rua=mailto:tls-reports@${mailHost}"`,
  )
}
