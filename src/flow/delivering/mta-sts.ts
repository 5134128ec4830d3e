// The MTA-STS policies that deliveries obey (RFC 8461): remembered in memory and in the database, fetched when they change.
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { RecentlyUsed } from '../../base/recently-used.ts'
import type { Resolver } from '../../dns/resolver.ts'
import {
  type KnownPolicy,
  mayFetch,
  mustFetch,
  namesHost,
  readStsId,
  type StsPolicy,
  validPolicy,
} from '../../mailauth/mta-sts.ts'
import type { TlsPolicy } from '../../mailauth/tls-report/report.ts'
import type { Db } from '../../postgres/db.ts'
import { opportunistic, type TlsRequirement, violationOf } from '../../smtp/client/tls-requirement.ts'
import {
  findPolicy,
  notePolicyUse,
  type StoredPolicy,
  saveFailure,
  savePolicy,
  takeRefreshes,
} from '../../store/sending/mta-sts-policies.ts'
import type { PolicyFault, PolicyFetcher } from './fetch-policy.ts'
import { type Asking, type TlsRefusal, type TlsRule, type TlsRules, withoutPolicy } from './tls-rules.ts'

export interface MtaStsDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Pick<Resolver, 'resolve'>
  fetcher: Pick<PolicyFetcher, 'fetch'>
}

const dayMs = 86_400_000
/**
 * How long a node uses a policy, or its absence, without a look-up. A new id is then seen as soon as a new MX, which is
 * remembered for as long at most.
 */
const heldMs = 300_000
/** A policy that ends sooner, or an unanswered question, still spares each connection of a moment its look-up. */
const minHeldMs = 10_000
/** The memory of a node, for 10,000 domains with policies of usual size. */
const maxHeld = { maxEntries: 10_000, maxBytes: 4 << 20 }
const entryBytes = 128
const textDeadlineMs = 10_000
// RFC 8461 3.3: a daily refresh is suggested.
const refreshMs = dayMs
/** After a failed refresh. */
const retryMs = 3_600_000
/** A policy is refreshed for this long after the last mail to its domain. */
const usedMs = 30 * dayMs

/** A node's knowledge of the policy of a domain. */
interface Found {
  policy: StsPolicy | null
  /** The policy as reports show it. */
  reported: TlsPolicy | null
  /** Why there is no policy although the domain has a record. */
  fault: TlsRule['fault'] | null
  /** False if DNS did not answer. */
  isAnswered: boolean
}

/** The policies of a node. */
export class MtaSts implements TlsRules {
  readonly #deps: MtaStsDeps
  readonly #held = new RecentlyUsed<Found & { untilMs: number }>(maxHeld)

  constructor(deps: MtaStsDeps) {
    this.#deps = deps
  }

  async ruleOf(domain: string, host: string, asking: Asking): Promise<TlsRule> {
    const held = this.#held.use(domain)
    const isKnown = held !== undefined && this.#deps.clock.monotonicMs() < held.untilMs
    const { policy, reported, fault, isAnswered } = isKnown ? held : await this.#load(domain, asking)
    if (fault) {
      const unknown = { type: 'sts', domain, lines: [], mx: [] } as const
      return { ...withoutPolicy(domain), policy: unknown, fault, isUnsure: true }
    }
    // RFC 8461 5: the mode `none` is as if there were no policy.
    if (!policy || policy.mode === 'none') return { ...withoutPolicy(domain), isUnsure: !isAnswered }
    const decision = requirementBy(policy, host)
    if ('refusal' in decision) meters.tlsPolicies.inc({ policy: 'mta-sts enforce', outcome: 'violated' })
    return { decision, policy: reported! }
  }

  async #load(domain: string, { asker, signal }: Asking): Promise<Found> {
    const { db, clock } = this.#deps
    const at = clock.now()
    const [{ id, isAnswered }, row] = await Promise.all([
      findId(this.#deps, domain, { asker, signal }),
      findPolicy(db.writer, domain),
    ])
    const known = row && knownOf(row)
    const renewed = mustFetch(known, id, at)
      ? await renew(this.#deps, { domain, id: id!, known, usedAt: at }, signal)
      : null
    const fetched = renewed && 'policy' in renewed ? renewed.policy : null
    if (!fetched && row && at.getTime() - row.usedAt.getTime() > dayMs)
      await notePolicyUse(db.writer, domain, at)
    // RFC 8461 5.1: a policy that cannot be fetched again holds until it expires.
    const policy = fetched ?? (known && validPolicy(known, at))
    const validMs = fetched ? fetched.maxAgeSeconds * 1000 : leftMs(known, at)
    const found = {
      policy,
      reported: policy && reportedOf(domain, policy),
      fault: policy || id === null ? null : faultOf(renewed),
      isAnswered,
    }
    // If DNS does not answer, or the look-up was interrupted, the absence of a policy is not known for long.
    if (!signal.aborted) this.#hold(domain, found, policy ? validMs : isAnswered ? heldMs : 0)
    return found
  }

  #hold(domain: string, found: Found, validMs: number): void {
    const forMs = Math.max(minHeldMs, Math.min(heldMs, validMs))
    const patterns = found.policy?.mx.reduce((sum, name) => sum + name.length, 0) ?? 0
    const entry = { ...found, untilMs: this.#deps.clock.monotonicMs() + forMs }
    this.#held.set(domain, entry, entryBytes + domain.length + 2 * patterns)
  }
}

/** RFC 8460 4.4: the policy as lines of its text. */
function reportedOf(domain: string, { mode, mx, maxAgeSeconds }: StsPolicy): TlsPolicy {
  const names = mx.map((name) => `mx: ${name}`)
  const lines = ['version: STSv1', `mode: ${mode}`, ...names, `max_age: ${maxAgeSeconds}`]
  return { type: 'sts', domain, lines, mx }
}

/** The fault of the last fetch. Null: it is not repeated yet, and its reason is not kept. */
function faultOf(renewed: { policy: StsPolicy } | PolicyFault | null): NonNullable<TlsRule['fault']> {
  if (renewed && 'fault' in renewed) return { type: renewed.type, reason: renewed.fault }
  return { type: 'sts-policy-fetch-error', reason: null }
}

/** The requirement of a policy for one mail server of its domain; or the reason, in words, why the server gets no mail. */
export function requirementBy(policy: StsPolicy | null, host: string): TlsRequirement | TlsRefusal {
  // RFC 8461 5: the mode `none` is as if there were no policy.
  if (!policy || policy.mode === 'none') return opportunistic
  const requirement = { kind: 'mta-sts', mode: policy.mode, isListed: namesHost(policy, host) } as const
  // RFC 8461 5: in the mode `enforce` no mail goes to a server that the policy does not name.
  if (policy.mode !== 'enforce' || requirement.isListed) return requirement
  return { refusal: violationOf(requirement, null)!.text }
}

/**
 * The policy that mail to the domain would obey now, and why it could not be fetched if that was tried. Unlike a delivery it
 * stores nothing, and leaves no trace of a use.
 */
export async function foreseePolicy(
  deps: MtaStsDeps,
  domain: string,
  asking: Asking,
): Promise<{ policy: StsPolicy | null; fault: string | null }> {
  const at = deps.clock.now()
  const [{ id }, row] = await Promise.all([findId(deps, domain, asking), findPolicy(deps.db, domain)])
  const known = row && knownOf(row)
  const found = mustFetch(known, id, at) ? await deps.fetcher.fetch(domain, asking.signal) : null
  if (found && 'policy' in found) return { policy: found.policy, fault: null }
  return { policy: known && validPolicy(known, at), fault: found?.fault ?? null }
}

function leftMs(known: KnownPolicy | null, at: Date): number {
  return (known?.expiresAt?.getTime() ?? 0) - at.getTime()
}

function knownOf({ id, mode, mx, maxAgeSeconds, expiresAt, failedAt }: StoredPolicy): KnownPolicy {
  const policy = mode === null ? null : { mode, mx, maxAgeSeconds: maxAgeSeconds ?? 0 }
  return { id, policy, expiresAt, failedAt }
}

/** The id in the domain's record; null if there is no valid record, or DNS does not answer. */
async function findId(
  { resolver }: MtaStsDeps,
  domain: string,
  asking: Asking,
): Promise<{ id: string | null; isAnswered: boolean }> {
  const answer = await resolver.resolve('TXT', `_mta-sts.${domain}`, {
    ...asking,
    deadlineMs: textDeadlineMs,
  })
  const id = answer.status === 'ok' ? readStsId(answer.records) : null
  return { id, isAnswered: answer.status !== 'temporary' }
}

interface Renewal {
  domain: string
  id: string
  known: KnownPolicy | null
  /** The time of the mail that needs the policy. Null: none does now. */
  usedAt: Date | null
}

/** Fetches the policy and stores it, or the failure. Returns null if it was interrupted. */
async function renew(
  { db, clock, log, fetcher }: MtaStsDeps,
  { domain, id, known, usedAt }: Renewal,
  signal: AbortSignal,
): Promise<{ policy: StsPolicy } | PolicyFault | null> {
  const found = await fetcher.fetch(domain, signal)
  if (signal.aborted) return null
  const at = clock.now()
  meters.stsFetches.inc({ outcome: 'policy' in found ? 'fetched' : 'failed' })
  if ('policy' in found) {
    const { policy } = found
    const refreshAt = new Date(at.getTime() + Math.min(refreshMs, policy.maxAgeSeconds * 500))
    await savePolicy(db.writer, domain, { ...policy, id, refreshAt }, { at, usedAt })
    return found
  }
  await saveFailure(db.writer, domain, found.fault, { at, usedAt })
  // RFC 8461 3.3: administrators are alerted, unless the known policy has the mode `none`.
  if (known?.policy?.mode !== 'none')
    log.warn({ domain, id, fault: found.fault }, 'MTA-STS policy could not be fetched')
  return found
}

/** Fetches up to `limit` policies of domains in use again, before they expire. Returns whether there may be more. */
export async function refreshPolicies(
  deps: MtaStsDeps,
  limit: number,
  signal: AbortSignal,
): Promise<boolean> {
  const at = deps.clock.now()
  const taken = await takeRefreshes(deps.db.writer, {
    at,
    retryAt: new Date(at.getTime() + retryMs),
    usedSince: new Date(at.getTime() - usedMs),
    limit,
  })
  await Promise.all(
    taken.map(async ({ domain, ...row }) => {
      const known = knownOf(row)
      const { id } = await findId(deps, domain, { asker: '', signal })
      // RFC 8461 5.1: without a record, the policy holds until it expires.
      if (id !== null && mayFetch(known, at)) await renew(deps, { domain, id, known, usedAt: null }, signal)
    }),
  )
  return taken.length === limit
}
