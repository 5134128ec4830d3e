// Which TLS the mail servers of other domains must offer: by the policy of the domain, and by their TLSA records.
import type { DaneNames, HopAsking } from '../../dns/mx.ts'
import type { Resolver } from '../../dns/resolver.ts'
import { findTlsa } from '../../dns/tlsa.ts'
import { usableRecords } from '../../smtp/client/dane.ts'
import type { TlsRequirement } from '../../smtp/client/tls-requirement.ts'

export type Asking = Required<Pick<HopAsking, 'asker' | 'signal'>>

/** Which TLS the mail servers of other domains must offer if they have no usable TLSA records. */
export interface TlsRules {
  /**
   * The requirement for one mail server of a domain, both in A-labels; or the reason, in words, why no mail may go to it.
   * Asked before each connection, so an answer that is known must cost little. Rejects only if the database fails.
   */
  requirementOf(domain: string, host: string, asking: Asking): Promise<TlsRequirement | { refusal: string }>
}

/** Null if the host has no TLSA records. */
export async function daneRequirementOf(
  { resolver, mxPort }: { resolver: Pick<Resolver, 'resolve'>; mxPort: number },
  { bases, names }: DaneNames,
  asking: Asking,
): Promise<TlsRequirement | { refusal: string } | null> {
  const found = await findTlsa(resolver, bases, mxPort, asking)
  switch (found.status) {
    case 'none':
      return null
    // RFC 7672 2.1.2: a host whose records cannot be looked up gets no mail.
    case 'temporary':
      return { refusal: `DANE: its TLSA records cannot be looked up: ${found.reason}` }
    case 'found':
      return {
        kind: 'dane',
        records: usableRecords(found.records),
        names: [...new Set([found.base, ...names])],
      }
  }
}
