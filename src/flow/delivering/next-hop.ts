// Finds the next hop of a destination queue and opens a connection to it, ready to send.
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { meters } from '../../base/meters.ts'
import type { DaneNames, HopFinder, Hops, Progress } from '../../dns/mx.ts'
import type { Resolver } from '../../dns/resolver.ts'
import {
  type ConnectFault,
  type ConnectOptions,
  connect,
  type SmtpConnection,
} from '../../smtp/client/client.ts'
import { isMandatory, nameOf, opportunistic, type TlsRequirement } from '../../smtp/client/tls-requirement.ts'
import type { Step } from '../../smtp/client/wire.ts'
import type { Round, RouteFault } from '../../store/sending/routes.ts'
import { type DeliveryMode, specialRoutes } from '../route-policy.ts'
import { canReach, type OutboundAddresses, sourceFor } from './outbound.ts'
import { type Asking, daneRequirementOf, type TlsRules } from './tls-rules.ts'

export interface RelayTarget {
  host: string
  port: number
  tls: 'opportunistic' | 'required' | 'implicit'
  tlsVerify: 'host' | 'none'
  auth: { user: string; password: string } | null
}

export interface NextHopDeps {
  hopFinder: HopFinder
  /** Asked for TLSA records. */
  resolver: Pick<Resolver, 'resolve'>
  mode: DeliveryMode
  relay: RelayTarget | null
  mxPort: number
  /** The source addresses of mail to other servers. Connections to our own nodes are not bound to them. */
  outbound: OutboundAddresses
  ehloName: string
  /** The EHLO name by which our own MX nodes recognize this deployment. */
  ownEhloName(): string
  /** Asked about hosts without usable TLSA records. If absent, their TLS is opportunistic. */
  tlsRules?: TlsRules
  /** How long to wait for a host. Default: the client's own timeouts. */
  timeouts?: NonNullable<ConnectOptions['timeouts']>
  /** How long one attempt may take for look-ups and all hosts together. Default: `attemptMs`. */
  deadlineMs?: number
  /** Addresses of our nodes that take mail for our own domains, or for capture, in the order to try: `ip:port`. */
  listAddresses(kind: 'smtp' | 'capture'): Promise<string[]>
}

/** Why a destination permanently takes no mail, with the status of RFC 3463. */
export interface Refusal {
  failureCode: 'domain_not_found' | 'null_mx'
  enhancedStatus: string
  reason: string
  /** Whether the mail server of the destination is this deployment. */
  isLoop: boolean
}

/** `fault`: the destination cannot be reached for now. `refusal`: it permanently takes no mail. */
export type Opened =
  /** `round` counts the connection's own address as asked: it is the round if the connection turns out to be of no use. */
  { connection: SmtpConnection; round: Round } | { fault: RouteFault } | { refusal: Refusal }

type Target = Pick<
  ConnectOptions,
  'host' | 'address' | 'port' | 'localAddress' | 'tls' | 'tlsVerify' | 'requirement' | 'auth' | 'timeouts'
> & { ehloName?: string; dane?: DaneNames | null }

/** The hosts of a route, in the order to ask them. */
interface Targets extends Progress {
  targets: Target[]
}

export interface OpenAsking extends Asking {
  /** Names and addresses that were asked in this round. */
  asked: readonly string[]
}

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

// RFC 5321 5.1: the number of addresses tried may be limited. The next attempt goes on with the others.
const maxAddresses = 5
/**
 * For the look-ups and all addresses of one attempt. Each address gets an equal share of the time that is left, so that a slow
 * server leaves time for the others. Defends against servers that answer each step just in time.
 */
export const attemptMs = 60_000
/** Names and addresses remembered of a round. A longer one starts over. */
const maxAsked = 300

/**
 * Asks the route's hosts in order until one is ready to take mail, beginning with those that were not asked in this round.
 * Never rejects for faults of DNS, network or servers.
 */
export async function openRoute(deps: NextHopDeps, route: string, asking: OpenAsking): Promise<Opened> {
  const deadlineMs = deps.deadlineMs ?? attemptMs
  const untilMs = performance.now() + deadlineMs
  return await limited(deadlineMs, asking.signal, (signal) =>
    openWithin(deps, route, { ...asking, signal, untilMs }),
  )
}

/** Runs `work` with a signal that aborts after `limitMs`, or with `outer`, but never after the work is done. */
async function limited<Result>(
  limitMs: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), limitMs)
  try {
    return await work(AbortSignal.any([outer, limit.signal]))
  } finally {
    clearTimeout(timer)
  }
}

async function openWithin(
  deps: NextHopDeps,
  route: string,
  asking: OpenAsking & { untilMs: number },
): Promise<Opened> {
  const { asker, signal, untilMs } = asking
  const found = await findTargets(deps, route, asking)
  if (!('targets' in found)) return found
  const asked = new Set(asking.asked)
  const unasked = found.targets.filter((target) => !isAsked(asked, target))
  if (unasked.length === 0) asked.clear()
  const targets = (unasked.length > 0 ? unasked : found.targets).slice(0, maxAddresses)
  const faults: HostFault[] = []
  for (const [index, target] of targets.entries()) {
    if (signal.aborted) break
    const shareMs = () => (untilMs - performance.now()) / (targets.length - index)
    const opened = await openTarget(deps, route, target, { asker, signal, shareMs, faults })
    asked.add(target.address)
    if ('connection' in opened) return { ...opened, round: roundAfter(found, asked) }
    faults.push(opened)
  }
  return { fault: { ...describeFaults(faults), ...roundAfter(found, asked) } }
}

function isAsked(asked: ReadonlySet<string>, { host, address }: Target): boolean {
  return asked.has(host) || asked.has(address)
}

/** The round once these names and addresses were asked. The name of a host includes all of its addresses. */
function roundAfter({ targets, searched, left }: Targets, asked: Set<string>): Round {
  const unasked = new Set(targets.filter((target) => !isAsked(asked, target)).map(({ host }) => host))
  for (const name of searched) {
    if (unasked.has(name)) continue
    asked.add(name)
    for (const { host, address } of targets) if (host === name) asked.delete(address)
  }
  const hasUnasked = (left > 0 || unasked.size > 0) && asked.size <= maxAsked
  return { asked: hasUnasked ? [...asked] : [], hasUnasked }
}

/** A host that could not take mail, and the same as a step of the attempt's conversation. */
interface HostFault {
  kind: RouteFault['classification']
  text: string
  step: Step
}

interface TargetAsking extends Asking {
  /** The share of the address in the time that is left. */
  shareMs(): number
  /** Faults of hosts that were asked before, in the same attempt. */
  faults: readonly HostFault[]
}

/** Connects to one address, unless the rules for TLS forbid mail to its host. */
async function openTarget(
  deps: NextHopDeps,
  route: string,
  target: Target,
  asking: TargetAsking,
): Promise<{ connection: SmtpConnection } | HostFault> {
  const requirement = await requirementOf(deps, route, target, asking)
  if (requirement && 'refusal' in requirement) {
    const refused = { fault: { kind: 'tls' as const, message: requirement.refusal }, reply: null }
    return hostFault(target, refused, asking.signal)
  }
  return await limited(asking.shareMs(), asking.signal, async (signal) => {
    const opened = await connectTo(
      deps,
      { ...target, ...(requirement && { requirement }) },
      asking.faults,
      signal,
    )
    if (requirement) count(requirement, opened)
    return 'connection' in opened ? opened : hostFault(target, opened, signal)
  })
}

/** Only mail servers of other domains have a requirement: `tls` alone says what holds for the relay and for our own nodes. */
async function requirementOf(
  deps: NextHopDeps,
  route: string,
  { host, dane }: Target,
  { asker, signal, shareMs }: TargetAsking,
): Promise<TlsRequirement | { refusal: string } | null> {
  if (route.startsWith('@')) return null
  const byDane =
    dane &&
    (await limited(shareMs(), signal, (share) => daneRequirementOf(deps, dane, { asker, signal: share })))
  // RFC 8461 2: TLSA records decide alone, so that MTA-STS never lets through a server that DANE refuses.
  if (byDane && !isUnverified(byDane)) return byDane
  // Not limited to the share: a silent policy host would use up the share of each address, and mail would never leave.
  const byPolicy = (await deps.tlsRules?.requirementOf(route, host, { asker, signal })) ?? opportunistic
  // RFC 7672 2.2: without a usable record DANE verifies no server. A policy that is enforced does.
  return byDane && !('refusal' in byPolicy) && !isMandatory(byPolicy) ? byDane : byPolicy
}

function isUnverified(requirement: TlsRequirement | { refusal: string }): boolean {
  return 'kind' in requirement && requirement.kind === 'dane' && requirement.records.length === 0
}

/** Counts connections that met or violated the requirement. A host that was not reached did neither. */
function count(requirement: TlsRequirement, opened: { connection: SmtpConnection } | ConnectFault): void {
  const isViolated =
    'connection' in opened ? opened.connection.remote.violation !== undefined : isMandatory(requirement)
  if ('fault' in opened && opened.fault.kind !== 'tls') return
  meters.tlsPolicies.inc({ policy: nameOf(requirement), outcome: isViolated ? 'violated' : 'met' })
}

async function connectTo(
  { ehloName, timeouts = {} }: NextHopDeps,
  target: Target,
  faults: readonly HostFault[],
  signal: AbortSignal,
): Promise<{ connection: SmtpConnection } | ConnectFault> {
  const earlier = faults.map(({ step }) => step)
  const options = { ehloName, ...target, timeouts: { ...target.timeouts, ...timeouts }, signal, earlier }
  const opened = await connect(options)
  if ('connection' in opened) return opened
  if (opened.fault.kind !== 'tls' || target.tls !== 'opportunistic') return opened
  if (target.requirement && isMandatory(target.requirement)) return opened
  // RFC 7435 3: opportunistic security sends in plaintext rather than not at all.
  return await connect({ ...options, tls: 'none' })
}

function hostFault(
  { host, address }: Target,
  { fault: { kind, message }, reply }: ConnectFault,
  { aborted }: AbortSignal,
): HostFault {
  const text = `${host} [${address}]: ${aborted ? 'not ready to take mail in time' : message}`
  const step = {
    command: 'connect',
    atMs: performance.now(),
    reply: { code: reply?.code ?? 0, enhanced: reply?.enhanced ?? null, text },
  }
  // Lack of time says nothing about the TLS of the server.
  return { kind: kind === 'tls' && !aborted ? 'tls' : 'network', text, step }
}

const maxFaultLength = 500

function faultOf(classification: RouteFault['classification'], text: string): RouteFault {
  return { text: text.slice(0, maxFaultLength), classification, asked: [], hasUnasked: false }
}

/** One fault for all hosts that were asked. It names each of them. A server without the required TLS is the reason. */
function describeFaults(faults: readonly HostFault[]): RouteFault {
  if (faults.length === 0) return faultOf('dns', 'DNS took too long')
  const share = Math.floor(maxFaultLength / faults.length) - 2
  const text = faults.map((one) => (one.text.length > share ? `${one.text.slice(0, share - 1)}…` : one.text))
  return faultOf(faults.some(({ kind }) => kind === 'tls') ? 'tls' : 'network', text.join('; '))
}

async function findTargets(
  deps: NextHopDeps,
  route: string,
  { asker, signal, asked }: OpenAsking,
): Promise<Targets | { fault: RouteFault } | { refusal: Refusal }> {
  if (route === specialRoutes.local) return await ownTargets(deps, 'smtp')
  // A queue left over from another delivery mode must not send: its mail is moved to the right queue.
  const isOurs = deps.mode === 'direct' ? !route.startsWith('@') : route === specialRoutes[deps.mode]
  if (!isOurs)
    return { fault: faultOf('network', `this queue belongs to another delivery mode than ${deps.mode}`) }
  if (route === specialRoutes.capture) return await ownTargets(deps, 'capture')
  if (route === specialRoutes.relay) return await relayTargets(deps)
  const hops = await deps.hopFinder.find(route, { asker, signal, passed: new Set(asked) })
  if (hops.status === 'ok') return targetsOf(deps, hops)
  if (hops.status !== 'temporary') return { refusal: refusalOf(hops) }
  const round = roundAfter(
    { targets: [], searched: hops.searched ?? [], left: hops.left ?? 0 },
    new Set(asked),
  )
  // If DNS names no server now, the round waits.
  return { fault: { ...faultOf('dns', hops.reason), ...(hops.searched ? round : { asked }) } }
}

function targetsOf(deps: NextHopDeps, { hosts, searched = [], left = 0 }: FoundHops): Targets {
  const targets = hosts.flatMap(({ name, addresses, dane }) =>
    addresses.map((address): Target => {
      const target = { host: name, address, dane, port: deps.mxPort, tls: 'opportunistic' as const }
      return { ...target, ...leavingBy(deps, address) }
    }),
  )
  // A machine without IPv6 asks the other addresses first, and so does not spend its attempts on IPv6.
  const [near = [], far = []] = [true, false].map((isNear) =>
    targets.filter(({ address }) => canReach(deps.outbound, address) === isNear),
  )
  return { targets: [...near, ...far], searched, left }
}

type FoundHops = Extract<Hops, { status: 'ok' }>

function refusalOf(hops: Exclude<Hops, { status: 'ok' | 'temporary' }>): Refusal {
  const missing = { failureCode: 'domain_not_found', isLoop: false } as const
  switch (hops.status) {
    case 'domain_not_found':
      // RFC 3463 3.2: X.1.2, bad destination system address.
      return { ...missing, enhancedStatus: '5.1.2', reason: 'the domain does not exist' }
    case 'null_mx':
      // RFC 7505 4.1: mail for a domain with a null MX is returned at once.
      return {
        ...missing,
        failureCode: 'null_mx',
        enhancedStatus: '5.1.10',
        reason: 'the domain accepts no mail',
      }
    case 'no_address':
      // RFC 3463 3.5: X.4.4, unable to route. A retry would not help, as no mail server has an allowed address.
      return { ...missing, enhancedStatus: '5.4.4', reason: hops.reason }
    case 'mail_loop':
      // RFC 3463 3.5: X.4.6, routing loop detected.
      return { ...missing, enhancedStatus: '5.4.6', reason: hops.reason, isLoop: true }
  }
}

/** All targets have the same name, so that only their addresses differ. */
const oneHost: Progress = { searched: [], left: 0 }

async function ownTargets(
  deps: NextHopDeps,
  kind: 'smtp' | 'capture',
): Promise<Targets | { fault: RouteFault }> {
  const addresses = await deps.listAddresses(kind)
  if (addresses.length === 0)
    return {
      fault: faultOf('network', `no node ${kind === 'smtp' ? 'takes mail (role mx)' : 'captures mail'}`),
    }
  const own = kind === 'smtp' ? { ehloName: deps.ownEhloName() } : {}
  const targets = addresses.map((text): Target => {
    const colon = text.lastIndexOf(':')
    const address = text.slice(0, colon).replace(/^\[|\]$/g, '')
    const port = Number(text.slice(colon + 1))
    return { host: deps.ehloName, address, port, tls: 'none', timeouts: ownTimeouts, ...own }
  })
  return { targets, ...oneHost }
}

/** Returns the option that binds a connection to `address` to our source address, if the system does not choose it. */
function leavingBy({ outbound }: NextHopDeps, address: string): Pick<Target, 'localAddress'> {
  const localAddress = sourceFor(outbound, address)
  return localAddress === undefined ? {} : { localAddress }
}

async function relayTargets(deps: NextHopDeps): Promise<Targets | { fault: RouteFault }> {
  const { relay } = deps
  if (!relay) return { fault: faultOf('network', 'POSTHORN_RELAY_URL is not set') }
  const { host, port, tls, tlsVerify, auth } = relay
  const shared = { host, port, tls, tlsVerify, ...(auth && { auth }) }
  try {
    const found = isIP(host) ? [{ address: host }] : await lookup(host, { all: true })
    const targets = found.map(({ address }) => ({ ...shared, address, ...leavingBy(deps, address) }))
    return { targets, ...oneHost }
  } catch (error) {
    return { fault: faultOf('dns', `the relay ${host} has no address: ${(error as Error).message}`) }
  }
}
