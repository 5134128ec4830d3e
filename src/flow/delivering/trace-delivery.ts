// Foresees what would happen to mail for an address: each step of a delivery up to the connection. Sends and stores nothing.
import { ServiceError } from '../../base/errors.ts'
import { type KnownAddress, readEmail } from '../../mail/address.ts'
import type { StsPolicy } from '../../mailauth/mta-sts.ts'
import { isMandatory, nameOf, opportunistic } from '../../smtp/client/tls-requirement.ts'
import { findOrganization, type Limits, type OrganizationRow } from '../../store/accounts/organizations.ts'
import { readUse } from '../../store/accounts/usage.ts'
import { listQueues, type QueueRow } from '../../store/sending/routes.ts'
import { type ForeseenRefusal, foreseeRefusal } from '../../store/sending/sends.ts'
import { findSuppression, type SuppressionRow } from '../../store/sending/suppressions.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import { type RoutePolicy, readRoute, routeFor, routeOf, specialRoutes } from '../route-policy.ts'
import { isOfFamily, sourcesOf, usualPurpose } from '../source-pools.ts'
import { foreseePolicy, type MtaStsDeps, requirementBy } from './mta-sts.ts'
import { findTargets, type NextHopDeps } from './next-hop.ts'
import { ruleOf, type Target } from './open-host.ts'
import { systemSourceTo } from './outbound.ts'
import { groupOf, type ShapingRules } from './shaping-rules.ts'
import { type TlsRule, withoutPolicy } from './tls-rules.ts'
import { stopOf, type TracedPool, tracePool } from './trace-sources.ts'

export interface TraceDeps {
  policies: MtaStsDeps
  domains: Pick<ProvedDomains, 'find'>
  routePolicy: RoutePolicy
  nextHop: NextHopDeps
  rules: ShapingRules
}

/** The mail to trace. If no purpose is named, it is unclassified. */
export interface TracedMail {
  email: string
  organizationId?: string | undefined
  purpose?: string | undefined
}

/** A server in the order in which attempts ask them. */
export interface TracedHost {
  host: string
  address: string
  port: number
  /** The addresses that mail would leave from. Null: this machine has no way to the server. */
  source: string | null
  /** The TLS that the server must offer, in the words of the delivery timeline. */
  tls: string
  /** Why no mail may go to this server. */
  refusal: string | null
}

const volumes = ['messagesPerMinute', 'messagesPerDay', 'recipientsPerDay'] as const

/** The sender's side: it refuses mail before it comes to a queue. */
export interface TracedSender extends Pick<OrganizationRow, 'id' | 'name' | 'status'> {
  suppression: Pick<SuppressionRow, 'reason' | 'createdAt'> | null
  limits: { name: (typeof volumes)[number]; used: number; limit: number }[]
  /** The refusal of one message to this recipient. */
  refusal: ForeseenRefusal | null
}

type Kind = 'mx' | 'own' | 'relay' | 'capture'

/** `sent`: an attempt would begin now. `waits`: not now. `fails`: never. `refused`: the organization may not send it. */
export type Outcome = 'sent' | 'waits' | 'fails' | 'refused'

export interface Trace {
  recipient: string
  route: { queue: string; nextHop: Kind }
  /** Null: no organization was named. */
  sender: TracedSender | null
  /** Null: the queue does not exist yet. */
  queue: QueueRow | null
  /** The policy of the recipient's domain. Null: none applies to this kind of next hop. */
  mtaSts: { policy: StsPolicy | null; fault: string | null } | null
  /** The source addresses that its mail leaves from. Null: the queue has no pool. */
  pool: TracedPool | null
  hosts: TracedHost[]
  /** How many further mail servers later attempts would look up. */
  furtherHosts: number
  outcome: Outcome
  /** Why it is not sent now. */
  reasons: string[]
}

/** How long all look-ups of a trace together may take. */
const deadlineMs = 60_000

/** Throws `not_found` for an organization that does not exist, and `invalid_request` for text that is no address. */
export async function traceDelivery(
  deps: TraceDeps,
  { email, organizationId, purpose = usualPurpose }: TracedMail,
): Promise<Trace> {
  const address = readEmail(email)
  if (!address) throw new ServiceError('invalid_request', `"${email}" is not an address`)
  const { db, clock } = deps.policies
  const { routePolicy } = deps
  const signal = AbortSignal.timeout(deadlineMs)
  const route = routeOf(routePolicy, address.domain, await deps.domains.find(address.domain))
  const key = routeFor(route, null, routePolicy.choosePool(organizationId ?? '', purpose))
  const [sender, [queue = null]] = await Promise.all([
    organizationId === undefined ? null : traceSender(deps, address, organizationId),
    listQueues(db, key),
  ])
  const nextHop = kindOf(route)
  const mtaSts = nextHop === 'mx' ? await foreseePolicy(deps.policies, route, { asker: '', signal }) : null
  const way = await traceHosts(deps, key, {
    asked: queue?.asked ?? [],
    policy: mtaSts?.policy ?? null,
    signal,
  })
  const providers = way.hosts.map(({ host }) => groupOf(deps.rules, key, host).provider)
  const asked = { key, providers: [...new Set(providers)] }
  const pool = await tracePool(db, deps.nextHop.pools ?? [], asked, clock.now())
  const found = { recipient: address.email, route: { queue: key, nextHop }, sender, queue, mtaSts, pool }
  return { ...found, hosts: way.hosts, furtherHosts: way.furtherHosts, ...conclude(found, way, deps) }
}

function kindOf(key: string): Kind {
  if (key === specialRoutes.local) return 'own'
  if (key === specialRoutes.relay) return 'relay'
  return key === specialRoutes.capture ? 'capture' : 'mx'
}

async function traceSender(
  { policies: { db, clock } }: TraceDeps,
  { key }: KnownAddress,
  id: string,
): Promise<TracedSender> {
  const organization = await findOrganization(db, id)
  if (!organization) throw new ServiceError('not_found', `there is no organization ${id}`)
  const at = clock.now()
  const { name, status, limits } = organization
  const asked = { organizationId: organization.id, inboxId: null, recipients: [key] }
  const [suppression, use, refusal] = await Promise.all([
    findSuppression(db, organization.id, key),
    readUse(db, organization.id, at),
    foreseeRefusal(db, asked, at),
  ])
  return {
    id: organization.id,
    name,
    status,
    suppression: suppression && { reason: suppression.reason, createdAt: suppression.createdAt },
    limits: volumes.map((one) => ({ name: one, used: use[one], limit: (limits as Limits)[one] })),
    refusal,
  }
}

interface Way {
  hosts: TracedHost[]
  furtherHosts: number
  /** Why no server can be asked now, or ever. */
  obstacle: { outcome: 'waits' | 'fails'; reason: string } | null
}

interface WayAsking {
  /** The servers that the present round has asked. */
  asked: readonly string[]
  policy: StsPolicy | null
  signal: AbortSignal
}

async function traceHosts(deps: TraceDeps, key: string, { asked, policy, signal }: WayAsking): Promise<Way> {
  const asking = { asker: '', signal, asked }
  const found = await findTargets(deps.nextHop, key, asking)
  const none = { hosts: [], furtherHosts: 0 }
  if ('fault' in found) return { ...none, obstacle: { outcome: 'waits', reason: found.fault.text } }
  if ('refusal' in found) return { ...none, obstacle: { outcome: 'fails', reason: found.refusal.reason } }
  const tlsRules = {
    ruleOf: async (domain: string, host: string) => ({
      ...withoutPolicy(domain),
      decision: requirementBy(policy, host),
    }),
  }
  const hosts: TracedHost[] = []
  for (const target of found.targets)
    hosts.push(await traceHost({ ...deps.nextHop, tlsRules }, key, target, signal))
  return { hosts, furtherHosts: found.left, obstacle: obstacleOf(hosts) }
}

async function traceHost(
  deps: NextHopDeps,
  key: string,
  target: Target,
  signal: AbortSignal,
): Promise<TracedHost> {
  const { host, address, port } = target
  const asking = { asker: '', signal, shareMs: () => deadlineMs, faults: [] }
  const rule = await ruleOf(deps, readRoute(key), target, asking)
  const pooled = sourcesOf(deps.pools ?? [], key)?.filter((one) => isOfFamily(one, address))
  const source =
    pooled?.map((one) => one.address).join(', ') ?? target.localAddress ?? (await systemSourceTo(address))
  const refusal = rule && 'refusal' in rule.decision ? rule.decision.refusal : null
  return { host, address, port, source, tls: tlsOf(target, rule), refusal }
}

function tlsOf({ tls }: Target, rule: TlsRule | null): string {
  if (!rule) return tls ?? 'none'
  const { decision } = rule
  if ('refusal' in decision) return 'refused'
  const words = nameOf(decision)
  return decision === opportunistic || isMandatory(decision) ? words : `${words} (reports only)`
}

function obstacleOf(hosts: readonly TracedHost[]): Way['obstacle'] {
  if (hosts.some(({ refusal, source }) => refusal === null && source !== null)) return null
  const reasons = new Set(
    hosts.map(({ refusal }) => refusal ?? 'this machine has no way to its mail servers'),
  )
  return { outcome: 'waits', reason: [...reasons].join('; ') }
}

/** The outcome, by the first thing that would stop the mail: the sender's refusal, the next hop, the state of the queue. */
function conclude(
  { sender, queue, pool }: Pick<Trace, 'sender' | 'queue' | 'pool'>,
  { obstacle }: Way,
  { policies: { clock } }: TraceDeps,
): Pick<Trace, 'outcome' | 'reasons'> {
  const refusals = sender?.refusal ? [describeRefusal(sender, sender.refusal)] : []
  const at = clock.now()
  const stops = pool?.sources.map((source) => stopOf(source, pool.providers, at)) ?? []
  const resting = stops.filter((stop) => stop !== null)
  // Mail waits only if no source may send.
  const waits = [...(queue ? stopsOf(queue, at) : []), ...(resting.length === stops.length ? resting : [])]
  const reasons = [...refusals, ...(obstacle ? [obstacle.reason] : []), ...waits]
  if (refusals.length > 0) return { outcome: 'refused', reasons }
  if (obstacle) return { outcome: obstacle.outcome, reasons }
  return { outcome: waits.length > 0 ? 'waits' : 'sent', reasons }
}

function describeRefusal({ status, suppression }: TracedSender, refusal: ForeseenRefusal): string {
  const { code, limit, retryAfterSeconds } = refusal
  if (code === 'all_recipients_suppressed' && suppression)
    return `the address is suppressed (${suppression.reason}, since ${suppression.createdAt.toISOString()})`
  if (code === 'organization_inactive') return `the organization is ${status}`
  return limit ? `the limit ${limit} is reached for ${retryAfterSeconds} s` : code
}

function stopsOf({ paused, notBefore, failures, lastFault, group }: QueueRow, at: Date): string[] {
  const groupUntil = group?.pausedUntil ? new Date(group.pausedUntil) : null
  const isBlocked = notBefore !== null && notBefore > at
  return [
    ...(paused ? ['the queue is paused'] : []),
    ...(isBlocked
      ? [
          `the queue waits until ${notBefore.toISOString()}${failures > 0 ? ` (failure ${failures}): ${lastFault}` : ''}`,
        ]
      : []),
    ...(groupUntil && groupUntil > at
      ? [`the limits of ${group!.name} hold its mail until ${groupUntil.toISOString()}: ${group!.reason}`]
      : []),
  ]
}
