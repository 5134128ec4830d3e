// Connects to one mail server of a queue: finds the TLS that it must offer, obeys that, and counts the result.
import { meters } from '../../base/meters.ts'
import type { DaneNames } from '../../dns/mx.ts'
import type { Resolver } from '../../dns/resolver.ts'
import type { SessionResult, TlsFailure } from '../../mailauth/tls-report/report.ts'
import {
  type ConnectFault,
  type ConnectOptions,
  connect,
  type SmtpConnection,
} from '../../smtp/client/client.ts'
import { isMandatory, nameOf, type TlsRequirement } from '../../smtp/client/tls-requirement.ts'
import type { Fault, Step } from '../../smtp/client/wire.ts'
import type { RouteFault } from '../../store/sending/routes.ts'
import { specialRoutes, type TlsWish } from '../route-policy.ts'
import {
  type Asking,
  daneRuleOf,
  demanding,
  isUnverified,
  strongerOf,
  type TlsRefusal,
  type TlsRule,
  type TlsRules,
  withoutPolicy,
} from './tls-rules.ts'

export interface HostDeps {
  /** Asked for TLSA records. */
  resolver: Pick<Resolver, 'resolve'>
  mxPort: number
  ehloName: string
  /** Asked about hosts without usable TLSA records. If absent, their TLS is opportunistic. */
  tlsRules?: TlsRules
  /** Takes the result of each session with a mail server of another domain, for reports about TLS. */
  noteTls?(domain: string, result: SessionResult): void
  /** How long to wait for a host. Default: the client's own timeouts. */
  timeouts?: NonNullable<ConnectOptions['timeouts']>
}

export type Target = Pick<
  ConnectOptions,
  | 'host'
  | 'address'
  | 'port'
  | 'localAddress'
  | 'tls'
  | 'tlsVerify'
  | 'requirement'
  | 'demand'
  | 'auth'
  | 'timeouts'
> & { ehloName?: string; dane?: DaneNames | null }

/** A queue's destination, and its senders' wish for TLS. */
export interface Destination {
  /** A domain, or a special queue. */
  hop: string
  wish: TlsWish | null
}

/** A host that could not take mail, and the same as a step of the attempt's conversation. */
export interface HostFault {
  kind: RouteFault['classification']
  text: string
  step: Step
  /** The reply that was the reason. */
  reply: ConnectFault['reply']
  /** The status of RFC 8689 if the host cannot fulfil the senders' demand, and a later attempt would not change that. */
  unmet?: '5.7.10' | '5.7.30'
}

export interface HostAsking extends Asking {
  /** The share of the address in the time that is left. */
  shareMs(): number
  /** Faults of hosts that were asked before, in the same attempt. */
  faults: readonly HostFault[]
}

/** Runs `work` with a signal that aborts after `limitMs`, or with `outer`, but never after the work is done. */
export async function limited<Result>(
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

/** Connects to one address, unless the rules for TLS forbid mail to its host. */
export async function openHost(
  deps: HostDeps,
  destination: Destination,
  target: Target,
  asking: HostAsking,
): Promise<{ connection: SmtpConnection } | HostFault> {
  const rule = await ruleOf(deps, destination, target, asking)
  if (rule && 'refusal' in rule.decision) {
    const { refusal } = rule.decision
    if (!asking.signal.aborted) note(deps, destination, rule, refusedBy(rule, target, refusal))
    const refused = { fault: { kind: 'tls' as const, message: refusal }, reply: null }
    return unmetBy(destination, rule.decision, hostFault(target, refused, asking.signal))
  }
  const requirement = rule && 'kind' in rule.decision ? rule.decision : null
  return await limited(asking.shareMs(), asking.signal, async (signal) => {
    const secured = {
      ...target,
      ...(requirement && { requirement }),
      ...demandOf(destination, target),
    }
    const { opened, handshake } = await connectTo(deps, secured, asking.faults, signal)
    if (rule && requirement && !signal.aborted) {
      count(requirement, opened)
      note(deps, destination, rule, resultOf(rule, target, { opened, handshake }))
    }
    if ('connection' in opened) return opened
    return unmetBy(destination, opened, hostFault(target, opened, signal))
  })
}

function demandOf(
  { hop, wish }: Destination,
  { tls }: Target,
): Pick<Target, 'demand' | 'tls' | 'tlsVerify'> | null {
  // Connections to our own nodes are inside the deployment, like those to the database.
  if (wish !== 'required' || (hop.startsWith('@') && hop !== specialRoutes.relay)) return null
  const demand = 'REQUIRETLS'
  // For mail servers of other domains, the requirement says which certificate counts.
  if (!hop.startsWith('@')) return { demand, tls }
  // RFC 8689 4.2.1: a smarthost needs a valid certificate too.
  return { demand, tls: tls === 'implicit' ? tls : 'required', tlsVerify: 'host' }
}

/** Adds the status with which mail of the queue ends if no host can take it. */
function unmetBy({ wish }: Destination, reason: TlsRefusal | ConnectFault, failed: HostFault): HostFault {
  if (wish !== 'required' || failed.kind !== 'tls') return failed
  if ('refusal' in reason) return reason.isFinal ? { ...failed, unmet: '5.7.10' } : failed
  if (reason.lacking) return { ...failed, unmet: '5.7.30' }
  // A handshake that failed without a violation may succeed later.
  return reason.violation ? { ...failed, unmet: '5.7.10' } : failed
}

/** Only mail servers of other domains have a rule: `tls` alone says what holds for the relay and for our own nodes. */
export async function ruleOf(
  deps: HostDeps,
  { hop, wish }: Destination,
  { host, dane }: Target,
  { asker, signal, shareMs }: HostAsking,
): Promise<TlsRule | null> {
  if (hop.startsWith('@')) return null
  // RFC 8689 4.2.2: TLS is then opportunistic, whatever the recipient's domain publishes.
  if (wish === 'optional') return withoutPolicy(hop)
  const byDane =
    dane && (await limited(shareMs(), signal, (share) => daneRuleOf(deps, dane, { asker, signal: share })))
  // RFC 8461 2: TLSA records decide alone, so that MTA-STS never lets through a server that DANE refuses.
  if (byDane && !isUnverified(byDane)) return byDane
  // Not limited to the share: a silent policy host would use up the share of each address, and mail would never leave.
  const byPolicy = (await deps.tlsRules?.ruleOf(hop, host, { asker, signal })) ?? withoutPolicy(hop)
  if (wish === 'required') return demanding(byPolicy, dane ? 'proved' : 'unproved')
  return strongerOf(byDane ?? null, byPolicy)
}

/** Counts connections that met or violated the requirement. A host that was not reached did neither. */
function count(requirement: TlsRequirement, opened: { connection: SmtpConnection } | ConnectFault): void {
  const isViolated =
    'connection' in opened ? opened.connection.remote.violation !== undefined : isMandatory(requirement)
  if ('fault' in opened && opened.fault.kind !== 'tls') return
  meters.tlsPolicies.inc({ policy: nameOf(requirement), outcome: isViolated ? 'violated' : 'met' })
}

/** Notes the result of a session. Sessions for mail with a wish of its own say nothing about the domain's policy. */
function note(
  { noteTls }: HostDeps,
  { hop, wish }: Destination,
  { policy }: TlsRule,
  result: Pick<SessionResult, 'failure'> | null,
): void {
  if (wish === null && result) noteTls?.(hop, { policy, failure: result.failure })
}

function refusedBy({ fault }: TlsRule, { host }: Target, refusal: string): Pick<SessionResult, 'failure'> {
  const { type = 'validation-failure', reason = refusal } = fault ?? {}
  return { failure: { type, sendingIp: null, host, ip: null, reason } }
}

interface Session {
  opened: { connection: SmtpConnection } | ConnectFault
  /** Why TLS failed before the server was asked again without it. */
  handshake: Fault | null
}

/** The result of a session, as reports name it. Null if the server was not reached, or if something else failed. */
function resultOf(
  { fault }: TlsRule,
  { host, address: ip }: Target,
  { opened, handshake }: Session,
): Pick<SessionResult, 'failure'> | null {
  const failed = (type: TlsFailure['type'], reason: string | null, sendingIp: string | null) => ({
    failure: { type, sendingIp, host, ip, reason },
  })
  if ('fault' in opened) {
    // RFC 8460 4.3.4: transient faults of the network need not be reported.
    if (opened.fault.kind !== 'tls') return null
    const { violation, localAddress = null } = opened
    return failed(
      violation?.type ?? 'validation-failure',
      violation?.text ?? codeOf(opened.fault),
      localAddress,
    )
  }
  const { violation, localAddress, remote } = opened.connection
  if (violation) return failed(violation.type, violation.text, localAddress)
  if (handshake) return failed('validation-failure', codeOf(handshake), localAddress)
  if (remote.tls === null) return failed('starttls-not-supported', null, localAddress)
  return fault ? failed(fault.type, fault.reason, localAddress) : { failure: null }
}

/** OpenSSL's text has numbers that differ each time. Its code does not. */
function codeOf({ message }: Fault): string {
  return /^[A-Z][A-Z0-9_]+(?=:)/.exec(message)?.[0] ?? message
}

async function connectTo(
  { ehloName, timeouts = {} }: HostDeps,
  target: Target,
  faults: readonly HostFault[],
  signal: AbortSignal,
): Promise<Session> {
  const earlier = faults.map(({ step }) => step)
  const options = { ehloName, ...target, timeouts: { ...target.timeouts, ...timeouts }, signal, earlier }
  const opened = await connect(options)
  const isFinal =
    'connection' in opened ||
    opened.fault.kind !== 'tls' ||
    target.tls !== 'opportunistic' ||
    target.demand !== undefined ||
    (target.requirement && isMandatory(target.requirement))
  if (isFinal) return { opened, handshake: null }
  // RFC 7435 3: opportunistic security sends in plaintext rather than not at all.
  return { opened: await connect({ ...options, tls: 'none' }), handshake: opened.fault }
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
  return { kind: kind === 'tls' && !aborted ? 'tls' : 'network', text, step, reply }
}
