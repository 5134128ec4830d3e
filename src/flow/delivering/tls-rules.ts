// Which TLS the mail servers of other domains must offer: by the policy of the domain, and by their TLSA records.
import type { DaneNames, HopAsking } from '../../dns/mx.ts'
import type { Resolver } from '../../dns/resolver.ts'
import { findTlsa } from '../../dns/tlsa.ts'
import type { FailureType, TlsPolicy } from '../../mailauth/tls-report/report.ts'
import { usableRecords } from '../../smtp/client/dane.ts'
import { isMandatory, opportunistic, type TlsRequirement } from '../../smtp/client/tls-requirement.ts'

export type Asking = Required<Pick<HopAsking, 'asker' | 'signal'>>

/** Why no mail may go to a server, in words. `isFinal`: it will not be different at a later attempt. */
export interface TlsRefusal {
  refusal: string
  isFinal?: boolean
}

/** The rule for one mail server. */
export interface TlsRule {
  decision: TlsRequirement | TlsRefusal
  /** The policy that the rule comes from, as reports about TLS name it. */
  policy: TlsPolicy
  /** A fault of the policy itself, as such reports name it. */
  fault?: { type: FailureType; reason: string | null }
  /** Whether the domain may have a policy that could not be found now. */
  isUnsure?: boolean
}

/** Which TLS the mail servers of other domains must offer if they have no usable TLSA records. */
export interface TlsRules {
  /**
   * The rule for one mail server of a domain, both in A-labels. Asked before each connection, so an answer that is known
   * must cost little. Rejects only if the database fails.
   */
  ruleOf(domain: string, host: string, asking: Asking): Promise<TlsRule>
}

/** The rule for the servers of a domain without a policy. */
export function withoutPolicy(domain: string): TlsRule {
  return { decision: opportunistic, policy: { type: 'no-policy-found', domain, lines: [], mx: [] } }
}

/** Null if the host has no TLSA records. */
export async function daneRuleOf(
  { resolver, mxPort }: { resolver: Pick<Resolver, 'resolve'>; mxPort: number },
  { bases, names }: DaneNames,
  asking: Asking,
): Promise<TlsRule | null> {
  const found = await findTlsa(resolver, bases, mxPort, asking)
  switch (found.status) {
    case 'none':
      return null
    // RFC 7672 2.1.2: a host whose records cannot be looked up gets no mail.
    case 'temporary':
      return {
        decision: { refusal: `DANE: its TLSA records cannot be looked up: ${found.reason}` },
        policy: { type: 'tlsa', domain: bases[0]!, lines: [], mx: [] },
        fault: { type: 'dnssec-invalid', reason: found.reason },
      }
    case 'found': {
      const records = usableRecords(found.records)
      // RFC 6698 2.2: the presentation format.
      const lines = found.records
        .slice(0, maxLines)
        .map((one) =>
          `${one.usage} ${one.selector} ${one.matchingType} ${one.association}`.slice(0, maxLineLength),
        )
      return {
        decision: { kind: 'dane', records, names: [...new Set([found.base, ...names])] },
        policy: { type: 'tlsa', domain: found.base, lines, mx: [] },
        ...(records.length === 0 && { fault: { type: 'tlsa-invalid', reason: 'no record is usable' } }),
      }
    }
  }
}

const maxLines = 32
/** A whole certificate is cut: each kind of session in a report has a copy of these lines. */
const maxLineLength = 500

/** Whether the rule requires TLS, but verifies no server. */
export function isUnverified({ decision }: TlsRule): boolean {
  return 'kind' in decision && decision.kind === 'dane' && decision.records.length === 0
}

/** Returns the rule that decides if a host has TLSA records, none of them usable, and its domain this policy. */
export function strongerOf(byDane: TlsRule | null, byPolicy: TlsRule): TlsRule {
  // RFC 7672 2.2: without a usable record DANE verifies no server. A policy that is enforced does.
  return byDane && !('refusal' in byPolicy.decision) && !isMandatory(byPolicy.decision) ? byDane : byPolicy
}

/**
 * Returns the rule for mail whose sender demands TLS, from the rule of the domain's policy. `way`: whether DNSSEC proves the
 * names from the domain to the host.
 */
export function demanding(rule: TlsRule, way: 'proved' | 'unproved'): TlsRule {
  const { decision } = rule
  if ('refusal' in decision) return rule
  // RFC 8689 4.2.1: without DNSSEC, the policy must name the server. A policy that is tested does.
  if (decision.kind === 'mta-sts' && decision.isListed)
    return { ...rule, decision: { ...decision, mode: 'enforce' } }
  if (way === 'proved') return { ...rule, decision: { kind: 'requiretls' } }
  const refusal = rule.isUnsure
    ? 'REQUIRETLS: the MTA-STS policy of the domain cannot be found now'
    : 'REQUIRETLS: neither DNSSEC nor an MTA-STS policy proves that it is a mail server of the domain'
  return { ...rule, decision: { refusal, isFinal: !rule.isUnsure } }
}
