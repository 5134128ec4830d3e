// Finds the next hop of a destination queue and opens a connection to it, ready to send.
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { meters } from '../../base/meters.ts'
import type { HopAsking, HopFinder } from '../../dns/mx.ts'
import {
  type ConnectFault,
  type ConnectOptions,
  connect,
  type SmtpConnection,
} from '../../smtp/client/client.ts'
import { isMandatory, nameOf, opportunistic, type TlsRequirement } from '../../smtp/client/tls-requirement.ts'
import type { RouteFault } from '../../store/sending/routes.ts'
import { type DeliveryMode, specialRoutes } from '../route-policy.ts'
import { type OutboundAddresses, sourceFor } from './outbound.ts'

export interface RelayTarget {
  host: string
  port: number
  tls: 'opportunistic' | 'required' | 'implicit'
  tlsVerify: 'host' | 'none'
  auth: { user: string; password: string } | null
}

export interface NextHopDeps {
  hopFinder: HopFinder
  mode: DeliveryMode
  relay: RelayTarget | null
  mxPort: number
  /** The source addresses of mail to other servers. Connections to our own nodes are not bound to them. */
  outbound: OutboundAddresses
  ehloName: string
  /** The EHLO name by which our own MX nodes recognize this deployment. */
  ownEhloName(): string
  tlsRules?: TlsRules
  /** How long to wait for a host. Default: the client's own timeouts. */
  timeouts?: NonNullable<ConnectOptions['timeouts']>
  /** How long to wait for all hosts of a route together. Default: two minutes. */
  deadlineMs?: number
  /** Addresses of our nodes that take mail for our own domains, or for capture, in the order to try: `ip:port`. */
  listAddresses(kind: 'smtp' | 'capture'): Promise<string[]>
}

/** Which TLS the mail servers of other domains must offer. If absent, TLS is opportunistic. */
export interface TlsRules {
  /**
   * The requirement for one mail server of a domain, both in A-labels; or the reason, in words, why no mail may go to it.
   * Asked before each connection, so an answer that is known must cost little. Rejects only if the database fails.
   */
  requirementOf(
    domain: string,
    host: string,
    asking: Required<HopAsking>,
  ): Promise<TlsRequirement | { refusal: string }>
}

/** `fault`: the destination cannot be reached for now. `refusal`: the destination permanently takes no mail. */
export type Opened =
  | { connection: SmtpConnection }
  | { fault: RouteFault }
  | { refusal: 'domain_not_found' | 'null_mx' }

type Target = Pick<
  ConnectOptions,
  'host' | 'address' | 'port' | 'localAddress' | 'tls' | 'tlsVerify' | 'requirement' | 'auth' | 'timeouts'
> & { ehloName?: string }

/**
 * Timeouts for our own nodes. A node's process greets within 5 s unless it hangs, and then the next node is tried. RCPT and
 * the message wait for the database, whose locks may take up to 15 s. With less patience, a message that the node accepts
 * after all would arrive twice.
 */
const ownTimeouts: ConnectOptions['timeouts'] = {
  connectMs: 5_000,
  bannerMs: 5_000,
  ehloMs: 5_000,
  mailMs: 5_000,
  rcptMs: 20_000,
  dataStartMs: 20_000,
  dataBlockMs: 20_000,
  dataFinalMs: 20_000,
}

// RFC 5321 5.1: the number of addresses tried may be limited. Otherwise many silent servers would take too long.
const maxAddresses = 5
/** For all addresses together. Defends against servers that answer each step just in time. */
const deadlineMs = 120_000

/** Tries the route's hosts in order until one is ready to take mail. Never rejects for faults of DNS, network or servers. */
export async function openRoute(
  deps: NextHopDeps,
  route: string,
  { asker, signal }: Required<HopAsking>,
): Promise<Opened> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), deps.deadlineMs ?? deadlineMs)
  try {
    return await openWithin(deps, route, { asker, signal: AbortSignal.any([signal, deadline.signal]) })
  } finally {
    clearTimeout(timer)
  }
}

async function openWithin(deps: NextHopDeps, route: string, asking: Required<HopAsking>): Promise<Opened> {
  const { signal } = asking
  const targets = await findTargets(deps, route, asking)
  if (!Array.isArray(targets)) return targets
  let fault: RouteFault | null = null
  let skipped: RouteFault | null = null
  let tried = 0
  for (const target of targets) {
    const requirement = await requirementOf(deps, route, target, asking)
    if (requirement && 'refusal' in requirement) {
      skipped = faultOf('tls', `${target.host}: ${requirement.refusal}`)
      continue
    }
    const opened = await openTarget(deps, { ...target, ...(requirement && { requirement }) }, signal)
    if (requirement) count(requirement, opened)
    if ('connection' in opened) return opened
    const { kind, message } = opened.fault
    const why = signal.aborted ? 'not ready to take mail in time' : message
    fault = faultOf(kind === 'tls' ? 'tls' : 'network', `${target.host} [${target.address}]: ${why}`)
    if (signal.aborted || ++tried === maxAddresses) break
  }
  return { fault: fault ?? skipped ?? faultOf('network', 'no host to connect to') }
}

/** Only mail servers of other domains have a requirement: `tls` alone says what holds for the relay and for our own nodes. */
async function requirementOf(
  { tlsRules }: NextHopDeps,
  route: string,
  { host }: Target,
  asking: Required<HopAsking>,
): Promise<TlsRequirement | { refusal: string } | null> {
  if (route.startsWith('@')) return null
  return (await tlsRules?.requirementOf(route, host, asking)) ?? opportunistic
}

/** Counts connections that met or violated the requirement. A host that was not reached did neither. */
function count(requirement: TlsRequirement, opened: { connection: SmtpConnection } | ConnectFault): void {
  const isViolated =
    'connection' in opened ? opened.connection.remote.violation !== undefined : isMandatory(requirement)
  if ('fault' in opened && opened.fault.kind !== 'tls') return
  meters.tlsPolicies.inc({ policy: nameOf(requirement), outcome: isViolated ? 'violated' : 'met' })
}

async function openTarget(
  deps: NextHopDeps,
  target: Target,
  signal: AbortSignal,
): Promise<{ connection: SmtpConnection } | ConnectFault> {
  const { ehloName, timeouts = {} } = deps
  const options = { ehloName, ...target, timeouts: { ...target.timeouts, ...timeouts }, signal }
  const opened = await connect(options)
  if ('connection' in opened) return opened
  if (opened.fault.kind !== 'tls' || target.tls !== 'opportunistic') return opened
  if (target.requirement && isMandatory(target.requirement)) return opened
  // RFC 7435 3: opportunistic security sends in plaintext rather than not at all.
  return await connect({ ...options, tls: 'none' })
}

const maxFaultLength = 500

function faultOf(classification: RouteFault['classification'], text: string): RouteFault {
  return { text: text.slice(0, maxFaultLength), classification }
}

async function findTargets(
  deps: NextHopDeps,
  route: string,
  asking: HopAsking,
): Promise<Target[] | Exclude<Opened, { connection: SmtpConnection }>> {
  if (route === specialRoutes.local) return await ownTargets(deps, 'smtp')
  // A queue left over from another delivery mode must not send: its mail is moved to the right queue.
  const isOurs = deps.mode === 'direct' ? !route.startsWith('@') : route === specialRoutes[deps.mode]
  if (!isOurs)
    return { fault: faultOf('network', `this queue belongs to another delivery mode than ${deps.mode}`) }
  if (route === specialRoutes.capture) return await ownTargets(deps, 'capture')
  if (route === specialRoutes.relay) return await relayTargets(deps)
  const hops = await deps.hopFinder.find(route, asking)
  switch (hops.status) {
    case 'ok':
      return hops.hosts.flatMap(({ name, addresses }) =>
        addresses.map((address): Target => {
          const target = { host: name, address, port: deps.mxPort, tls: 'opportunistic' as const }
          return { ...target, ...leavingBy(deps, address) }
        }),
      )
    case 'null_mx':
    case 'domain_not_found':
      return { refusal: hops.status }
    case 'no_address':
      // RFC 3463 3.5: X.4.4, unable to route. A retry would not help, as no mail server has an allowed address.
      return { refusal: 'domain_not_found' }
    case 'temporary':
      return { fault: faultOf('dns', hops.reason) }
  }
}

async function ownTargets(
  deps: NextHopDeps,
  kind: 'smtp' | 'capture',
): Promise<Target[] | { fault: RouteFault }> {
  const addresses = await deps.listAddresses(kind)
  if (addresses.length === 0)
    return {
      fault: faultOf('network', `no node ${kind === 'smtp' ? 'takes mail (role mx)' : 'captures mail'}`),
    }
  const own = kind === 'smtp' ? { ehloName: deps.ownEhloName() } : {}
  return addresses.map((text) => {
    const colon = text.lastIndexOf(':')
    const address = text.slice(0, colon).replace(/^\[|\]$/g, '')
    const port = Number(text.slice(colon + 1))
    return { host: deps.ehloName, address, port, tls: 'none', timeouts: ownTimeouts, ...own }
  })
}

/** Returns the option that binds a connection to `address` to our source address, if the system does not choose it. */
function leavingBy({ outbound }: NextHopDeps, address: string): Pick<Target, 'localAddress'> {
  const localAddress = sourceFor(outbound, address)
  return localAddress === undefined ? {} : { localAddress }
}

async function relayTargets(deps: NextHopDeps): Promise<Target[] | { fault: RouteFault }> {
  const { relay } = deps
  if (!relay) return { fault: faultOf('network', 'POSTHORN_RELAY_URL is not set') }
  const { host, port, tls, tlsVerify, auth } = relay
  const shared = { host, port, tls, tlsVerify, ...(auth && { auth }) }
  if (isIP(host)) return [{ ...shared, address: host, ...leavingBy(deps, host) }]
  try {
    const found = await lookup(host, { all: true })
    return found.map(({ address }) => ({ ...shared, address, ...leavingBy(deps, address) }))
  } catch (error) {
    return { fault: faultOf('dns', `the relay ${host} has no address: ${(error as Error).message}`) }
  }
}
