// The DNS tree walk of RFC 9989: finds the policy that applies to a domain, and its organizational domain.
import type { Lookup } from '../lookup.ts'
import { fitsDns, isPublicSuffix, isWithin, registeredDomain } from './dns-name.ts'
import { type DmarcRecord, isDmarcRecord, parseDmarcRecord } from './record.ts'

/** The DMARC record of one name. */
export type Published =
  | { status: 'found'; record: DmarcRecord }
  | { status: 'absent' }
  | { status: 'temporary'; reason: string }

/** Finds the record at `_dmarc` below the name. */
export type RecordLookup = (name: string) => Promise<Published>

export interface FoundRecord {
  /** The name that publishes the record, without `_dmarc`. */
  domain: string
  record: DmarcRecord
}

/** The records that a walk found. */
export interface Walk {
  /** From the longest name to the shortest. */
  found: FoundRecord[]
  /** Why the walk stopped early. Null if it reached its end. */
  failure: string | null
}

// RFC 9989 4.10: for a name with eight labels or more, the second question is about its last seven.
const maxLabelsAfterFirst = 7

/** Asks for each name once, however many walks need it. */
export function recordLookup(lookup: Lookup): RecordLookup {
  const known = new Map<string, Promise<Published>>()
  return (name) => {
    let answer = known.get(name)
    if (answer === undefined) {
      answer = askFor(lookup, name)
      known.set(name, answer)
    }
    return answer
  }
}

async function askFor(lookup: Lookup, name: string): Promise<Published> {
  const asked = `_dmarc.${name}`
  if (!fitsDns(asked)) return { status: 'absent' }
  const answer = await lookup('TXT', asked)
  if (answer.status === 'temporary') return answer
  // RFC 9989 4.10: a text that does not begin with the version is no record. If there are several records, none counts.
  const texts = answer.status === 'ok' ? answer.records.filter(isDmarcRecord) : []
  const record = texts.length === 1 ? parseDmarcRecord(texts[0]!) : null
  return record === null ? { status: 'absent' } : { status: 'found', record }
}

/**
 * The records at the domain and above it. Asks at most eight questions, one after the other. The walk ends at a record
 * that says whether its domain is a public suffix, or at an answer that DNS cannot give now.
 */
export async function walkTree(ask: RecordLookup, domain: string): Promise<Walk> {
  const found: FoundRecord[] = []
  for (const name of namesOf(domain)) {
    const published = await ask(name)
    if (published.status === 'temporary') return { found, failure: published.reason }
    if (published.status === 'absent') continue
    found.push({ domain: name, record: published.record })
    if (published.record.psd !== 'unsaid') break
  }
  return { found, failure: null }
}

/** The names of a walk from the domain, beginning with the domain. */
function namesOf(domain: string): string[] {
  const labels = domain.split('.')
  const above = labels.slice(1).slice(-maxLabelsAfterFirst)
  return [domain, ...above.map((_, at) => above.slice(at).join('.'))]
}

/**
 * The organizational domain after a complete walk from `start`. It follows from the records, or from the public suffix
 * list if there are none.
 */
export function organizationalDomain(start: string, found: readonly FoundRecord[]): string {
  for (const { domain, record } of found) {
    // RFC 9989 4.10.2: psd=n means this domain, psd=y the domain one label below, unless the walk began there.
    if (record.psd === 'no') return domain
    if (domain !== start && isSuffix(domain, record)) return childTowards(start, domain)
  }
  // RFC 9989 4.10.2: otherwise it is the domain of the record with the fewest labels.
  return found.at(-1)?.domain ?? registeredDomain(start)
}

// QUIRK: a registry may publish a record without a psd tag. Its customers would then be one organization, and could send
// in each other's names (RFC 9989 11.8). If the record does not say, the public suffix list decides.
function isSuffix(domain: string, { psd }: DmarcRecord): boolean {
  return psd === 'yes' || (psd === 'unsaid' && isPublicSuffix(domain))
}

function childTowards(start: string, parent: string): string {
  const labels = parent.split('.').length + 1
  return start.split('.').slice(-labels).join('.')
}

/** The record that gives the policy of an author's domain. */
export type Discovery =
  | { status: 'found'; policyDomain: string; record: DmarcRecord; organization: OrganizationalDomain }
  | { status: 'absent'; organizationalDomain: string }
  | { status: 'temporary'; reason: string }

/** The organizational domain. If the walk failed: a name that it equals or is below, and the reason. */
export type OrganizationalDomain =
  | { status: 'known'; domain: string }
  | { status: 'temporary'; within: string; reason: string }

/** RFC 9989 4.10.1: the author's record, else its organizational domain's, else that of the public suffix above. */
export async function discoverPolicy(ask: RecordLookup, domain: string): Promise<Discovery> {
  const { found, failure } = await walkTree(ask, domain)
  const own = found[0]?.domain === domain ? found[0] : null
  if (failure !== null) {
    if (own === null) return { status: 'temporary', reason: failure }
    const organization = { status: 'temporary' as const, within: registeredDomain(domain), reason: failure }
    return { status: 'found', policyDomain: domain, record: own.record, organization }
  }
  const organization = { status: 'known' as const, domain: organizationalDomain(domain, found) }
  const applied = own ?? inherited(organization.domain, found)
  if (applied === null) return { status: 'absent', organizationalDomain: organization.domain }
  return { status: 'found', policyDomain: applied.domain, record: applied.record, organization }
}

/** The record of the organizational domain, or else the nearest above it, which is that of a public suffix. */
function inherited(organization: string, found: readonly FoundRecord[]): FoundRecord | null {
  return found.find(({ domain }) => isWithin(organization, domain)) ?? null
}
