// The doctor's checks of outbound mail: its source addresses, whether it gets out, and the names of the addresses.
import { connect } from 'node:net'
import { listenerFault, tryListening } from '../../config/listener.ts'
import type { Settings } from '../../config/settings.ts'
import { isPublicUnicast } from '../../dns/public-address.ts'
import type { Resolver } from '../../dns/resolver.ts'
import { clientIp } from '../../mailauth/ip-network.ts'
import { confirmNames } from '../../mailauth/reverse-dns.ts'
import { type Check, failed, ok, skipped, warning } from './checks.ts'
import { checkRelay } from './relay.ts'

type Dns = Pick<Resolver, 'resolve'>
type Leaving = Pick<Settings, 'outbound' | 'mailHost'>

const wayOutLimitMs = 3_000
const wellKnownDomain = 'gmail.com'

/** Whether mail can leave: by the smarthost, or to a well-known mail server from each chosen address. */
export async function checkWayOut(settings: Settings, resolver: Dns): Promise<Check[]> {
  const { delivery, isDevelopment, mxPort, allowPrivateNetworks, outbound } = settings
  if (delivery === 'relay') return [await checkRelay(settings)]
  const name = 'port 25 out'
  if (delivery === 'capture') return [skipped(name, 'not needed: no mail leaves this machine (capture)')]
  if (isDevelopment || mxPort !== 25 || allowPrivateNetworks)
    return [skipped(name, 'not tried in development or tests')]
  const answer = await resolver.resolve('MX', wellKnownDomain)
  const host = answer.status === 'ok' ? answer.records[0]?.exchange : undefined
  if (!host) {
    const reason = `not tried: DNS returned no mail server of ${wellKnownDomain}`
    return [warning(name, reason, 'check that POSTHORN_DNS is right')]
  }
  const sources = [outbound.ipv4, outbound.ipv6].filter((source) => source !== null)
  return await Promise.all((sources.length > 0 ? sources : [null]).map((source) => checkPort25(host, source)))
}

async function checkPort25(host: string, source: string | null): Promise<Check> {
  const name = 'port 25 out'
  const from = source === null ? '' : ` from ${source}`
  const reason = await tryConnecting(host, source)
  if (reason === null) return ok(name, `${host}:25 answers${from}`)
  const mend =
    'ask your network provider to open port 25, or set POSTHORN_DELIVERY=relay and POSTHORN_RELAY_URL'
  return failed(name, `${host}:25${from}: ${reason}`, mend)
}

/** Connects to port 25 without sending anything. Returns null, or why it could not connect. */
function tryConnecting(host: string, source: string | null): Promise<string | null> {
  return new Promise((resolve) => {
    const from = source === null ? {} : { localAddress: source, family: source.includes(':') ? 6 : 4 }
    const socket = connect({ host, port: 25, ...from })
    const settle = (reason: string | null) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(reason)
    }
    const timer = setTimeout(() => settle(`no answer within ${wayOutLimitMs / 1000} s`), wayOutLimitMs)
    socket.on('connect', () => settle(null))
    socket.on('error', (error) => settle(error.message))
  })
}

/** Whether this machine has the chosen outbound addresses. No check if none was chosen. */
export async function checkOutbound({ outbound: { ipv4, ipv6 } }: Leaving): Promise<Check[]> {
  const name = 'outbound address'
  const checks: Check[] = []
  for (const host of [ipv4, ipv6]) {
    if (host === null) continue
    const listen = { host, port: 0 }
    const code = await tryListening(listen)
    if (code === null) checks.push(ok(name, `mail leaves from ${host}`))
    else
      checks.push(failed(name, `${host} is not an address of this machine (${code})`, mendOf(listen, code)))
  }
  return checks
}

function mendOf(listen: { host: string; port: number }, code: string): string {
  return listenerFault('POSTHORN_OUTBOUND_IP', listen, code).mend
}

/**
 * Whether the public addresses of our mail have the mail host's name, and that name has the addresses. Many receivers refuse
 * mail from an address without a name.
 */
export async function checkNames({ outbound, mailHost }: Leaving, resolver: Dns): Promise<Check[]> {
  const { four, six, seen } = await findSources({ outbound, mailHost }, resolver)
  return [
    ...uncovered(outbound.ipv4, four, mailHost),
    ...uncovered(outbound.ipv6, six, mailHost),
    ...(await Promise.all(seen.map((ip) => checkName(ip, mailHost, resolver)))),
  ]
}

/** The published addresses of the mail host, and the addresses that receivers see its mail come from. */
export async function findSources(
  { outbound, mailHost }: Leaving,
  resolver: Dns,
): Promise<{ four: string[]; six: string[]; seen: string[] }> {
  const [four, six] = await Promise.all([
    publishedOf(resolver, 'A', mailHost),
    publishedOf(resolver, 'AAAA', mailHost),
  ])
  return { four, six, seen: [...seenFrom(outbound.ipv4, four), ...seenFrom(outbound.ipv6, six)] }
}

/** Returns nothing either if DNS gives no answer: the check of the mail host's records reports that. */
export async function publishedOf(resolver: Dns, type: 'A' | 'AAAA', host: string): Promise<string[]> {
  const answer = await resolver.resolve(type, host)
  return answer.status === 'ok' ? answer.records.map(({ address }) => address) : []
}

/** The public addresses of one family. Behind a NAT: those of the mail host, not the private address. */
function seenFrom(source: string | null, published: readonly string[]): readonly string[] {
  const isHidden = source !== null && !isPublicUnicast(source) && !published.includes(source)
  return source === null || (isHidden && published.length > 0) ? published : [source]
}

/** The records that customers publish name the mail host, so they cover only its addresses. */
export function uncovered(source: string | null, published: readonly string[], mailHost: string): Check[] {
  if (source === null || !isPublicUnicast(source) || published.includes(source)) return []
  const type = source.includes(':') ? 'AAAA' : 'A'
  const reason = `mail leaves from ${source}, which is not an address of ${mailHost}: SPF with a:${mailHost} fails`
  return [failed('outbound address', reason, `publish: ${mailHost} ${type} ${source}`)]
}

export async function checkName(ip: string, mailHost: string, resolver: Dns): Promise<Check> {
  const name = 'reverse DNS'
  const lookup = resolver.resolve.bind(resolver) as Resolver['resolve']
  const { reverse, names, hasUnknown } = await confirmNames(lookup, clientIp(ip), 10)
  if (reverse === 'temporary' || (hasUnknown && names.length === 0))
    return warning(
      name,
      `DNS did not return the name of ${ip}`,
      'try again later, or set POSTHORN_DNS to other resolvers',
    )
  const mend = `ask the provider of the address to set its PTR record to ${mailHost}`
  if (reverse !== 'ok') return failed(name, `${ip} has no name, so large receivers refuse its mail`, mend)
  if (names.includes(mailHost)) return ok(name, `${ip} is ${mailHost}, and ${mailHost} has that address`)
  if (names[0] !== undefined)
    return warning(name, `${ip} is ${names[0]}, but its EHLO says ${mailHost}`, mend)
  const type = ip.includes(':') ? 'AAAA' : 'A'
  return failed(
    name,
    `no name of ${ip} leads back to that address, so large receivers refuse its mail`,
    `${mend}, and publish: ${mailHost} ${type} ${ip}`,
  )
}
