// Finds the next hop of a destination queue and opens a connection to it, ready to send.
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { HopFinder, Hops, Progress } from '../../dns/mx.ts'
import type { ConnectOptions, SmtpConnection } from '../../smtp/client/client.ts'
import type { Round, RouteFault } from '../../store/sending/routes.ts'
import { type DeliveryMode, readRoute, specialRoutes } from '../route-policy.ts'
import { isOfFamily, type SourcePool, sourcesOf } from '../source-pools.ts'
import type { Held, Slot } from './group-slots.ts'
import {
  type Destination,
  type HostAsking,
  type HostDeps,
  type HostFault,
  limited,
  openHost,
  type Target,
} from './open-host.ts'
import { canReach, type OutboundAddresses, sourceFor } from './outbound.ts'
import type { Asking } from './tls-rules.ts'

export interface RelayTarget {
  host: string
  port: number
  tls: 'opportunistic' | 'required' | 'implicit'
  tlsVerify: 'host' | 'none'
  auth: { user: string; password: string } | null
}

export interface NextHopDeps extends HostDeps {
  hopFinder: HopFinder
  mode: DeliveryMode
  relay: RelayTarget | null
  /** The source addresses of mail to other servers. Connections to our own nodes are not bound to them. */
  outbound: OutboundAddresses
  /** Pools of source addresses. Mail of a queue with a pool leaves from one of its sources. */
  pools?: readonly SourcePool[]
  /** The EHLO name by which our own MX nodes recognize this deployment. */
  ownEhloName(): string
  /** How long one attempt may take for look-ups and all hosts together. Default: `attemptMs`. */
  deadlineMs?: number
  /** Addresses of our nodes that take mail for our own domains, or for capture, in the order to try: `ip:port`. */
  listAddresses(kind: 'smtp' | 'capture'): Promise<string[]>
}

/** Why a destination permanently takes no mail, with the status of RFC 3463. */
export interface Refusal {
  failureCode: 'domain_not_found' | 'null_mx' | 'tls_required'
  enhancedStatus: string
  reason: string
  /** Whether the mail server of the destination is this deployment. */
  isLoop: boolean
}

/** `fault`: the destination cannot be reached for now. `refusal`: it permanently takes no mail. */
export type Opened =
  /** `round` counts the connection's own address as asked: it is the round if the connection turns out to be of no use. */
  | { connection: SmtpConnection; round: Round; slot: Slot | undefined }
  | { fault: RouteFault }
  | { refusal: Refusal }
  /** The limits of the destination's group allow no connection now. */
  | Held

/** The hosts of a route, in the order to ask them. */
interface Targets extends Progress {
  targets: Target[]
}

export interface OpenAsking extends Asking {
  /** Names and addresses that were asked in this round. */
  asked: readonly string[]
  /** Takes a connection to an address of a host. If absent, there is no limit. */
  enter?(target: Pick<Target, 'host' | 'address'>): Promise<Slot | Held>
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

async function openWithin(
  deps: NextHopDeps,
  route: string,
  asking: OpenAsking & { untilMs: number },
): Promise<Opened> {
  const { asker, signal, untilMs } = asking
  const destination = readRoute(route)
  const found = await findTargets(deps, route, asking)
  if (!('targets' in found)) return found
  const asked = new Set(asking.asked)
  const unasked = found.targets.filter((target) => !isAsked(asked, target))
  // A search that found no server goes on with the next names.
  if (unasked.length === 0 && found.targets.length > 0) asked.clear()
  const targets = unasked.length > 0 ? unasked : found.targets
  const faults: HostFault[] = []
  let held: Held | null = null
  // Servers at which all sources rest were not asked, so the next attempt begins with all of them.
  const roundOf = () => (held ? { asked: [], hasUnasked: false } : roundAfter(found, asked))
  for (const [index, target] of targets.entries()) {
    const left = Math.min(targets.length - index, maxAddresses - faults.length)
    if (signal.aborted || left === 0) break
    const shareMs = () => (untilMs - performance.now()) / left
    const { enter } = asking
    const opened = await openFromSource(deps, destination, target, { asker, signal, shareMs, faults, enter })
    if ('heldUntilMs' in opened) {
      if (held === null || opened.heldUntilMs < held.heldUntilMs) held = opened
      if (!opened.isRest) break
      continue // A server of another provider may take the mail.
    }
    asked.add(target.address)
    if ('connection' in opened) return { ...opened, round: roundOf() }
    faults.push(opened)
  }
  if (held && (faults.length === 0 || !held.isRest)) return held
  const round = roundOf()
  const isWhole = !held && asking.asked.length === 0 && !round.hasUnasked && !signal.aborted
  const refusal = isWhole ? unmetByAll(faults) : null
  return refusal ? { refusal } : { fault: { ...describeFaults(faults), ...round } }
}

/**
 * Connects to one address. If its server blocks our source address, connects from another source of the pool. Does so once if
 * no server answers.
 */
async function openFromSource(
  deps: NextHopDeps,
  destination: Destination,
  target: Target,
  asking: HostAsking & Pick<OpenAsking, 'enter'>,
): Promise<{ connection: SmtpConnection; slot: Slot | undefined } | Held | HostFault> {
  let { faults } = asking
  let wasSilent = false
  for (;;) {
    const slot = await asking.enter?.(target)
    if (slot && 'heldUntilMs' in slot) return slot
    const source = slot?.group.source
    const bound = source ? { ...target, localAddress: source.address, ehloName: source.ehlo } : target
    const opened = await openHost(deps, destination, bound, { ...asking, faults }).catch((error) => {
      slot?.release()
      throw error
    })
    if ('connection' in opened) return { ...opened, slot }
    // An attempt that we ended, or a lack of TLS, says nothing about limits.
    const isLimit = opened.kind !== 'tls' && !asking.signal.aborted
    const blocking = isLimit && opened.reply && slot?.group.isBlock(opened.reply, 'connect')
    const isSilent = isLimit && opened.reply === null
    // A source that rests is not chosen again, so each is asked once.
    if (blocking) slot!.rest(opened.reply!)
    else if (isSilent && !wasSilent && slot?.leaveToOthers()) wasSilent = true
    else return (isLimit ? slot?.fail(opened.step.reply) : slot?.release()) ?? opened
    faults = [...faults, opened]
  }
}

/** The refusal if none of the destination's hosts can fulfil the senders' demand for TLS. */
function unmetByAll(faults: readonly HostFault[]): Refusal | null {
  if (faults.length === 0 || faults.some(({ unmet }) => unmet === undefined)) return null
  // RFC 8689 4.2.1: 5.7.30 if a server does not support REQUIRETLS, 5.7.10 if none offers TLS as required.
  const enhancedStatus = faults.some(({ unmet }) => unmet === '5.7.30') ? '5.7.30' : '5.7.10'
  return { failureCode: 'tls_required', enhancedStatus, reason: describeFaults(faults).text, isLoop: false }
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

/** Returns the servers of the queue with this key. */
export async function findTargets(
  deps: NextHopDeps,
  key: string,
  { asker, signal, asked }: OpenAsking,
): Promise<Targets | { fault: RouteFault } | { refusal: Refusal }> {
  const { hop: route } = readRoute(key)
  if (route === specialRoutes.local) return await ownTargets(deps, 'smtp')
  // A queue left over from another delivery mode must not send: its mail is moved to the right queue.
  const isOurs = deps.mode === 'direct' ? !route.startsWith('@') : route === specialRoutes[deps.mode]
  if (!isOurs)
    return { fault: faultOf('network', `this queue belongs to another delivery mode than ${deps.mode}`) }
  if (route === specialRoutes.capture) return await ownTargets(deps, 'capture')
  if (route === specialRoutes.relay) return await relayTargets(deps)
  const hops = await deps.hopFinder.find(route, { asker, signal, passed: new Set(asked) })
  if (hops.status === 'ok') return fromPool(deps, key, targetsOf(deps, hops))
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

/** Leaves only servers that a source of the queue's pool may connect to. Its mail must not leave from another address. */
function fromPool({ pools = [] }: NextHopDeps, key: string, found: Targets): Targets | { fault: RouteFault } {
  const sources = sourcesOf(pools, key)
  if (!sources) return found
  const targets = found.targets.filter(({ address }) => sources.some((source) => isOfFamily(source, address)))
  if (targets.length > 0 || found.left > 0) return { ...found, targets }
  const { pool } = readRoute(key)
  const family = sources.some(({ address }) => address.includes(':')) ? 'IPv4' : 'IPv6'
  return { fault: faultOf('network', `its mail servers need ${family}, which the pool ${pool} lacks`) }
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
