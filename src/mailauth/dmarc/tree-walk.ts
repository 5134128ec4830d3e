// The DNS tree walk of RFC 9989: whose policy is that of a domain, and up to which name it is one organization's.
import type { Lookup } from '../lookup.ts'
import { fitsDns, isPublicSuffix, isWithin, registeredDomain } from './dns-name.ts'
import { type DmarcRecord, isDmarcRecord, parseDmarcRecord } from './record.ts'

/** What is published at one name. */
export type Published =
  | { status: 'found'; record: DmarcRecord }
  | { status: 'absent' }
  | { status: 'temporary'; reason: string }

/** Answers for a name what is published at `_dmarc` below it. */
export type RecordLookup = (name: string) => Promise<Published>

export interface FoundRecord {
  /** The name that it was published for, without `_dmarc`. */
  domain: string
  record: DmarcRecord
}

/** What is known of a domain's place in the tree. */
export interface Walk {
  /** From the longest name to the shortest. */
  found: FoundRecord[]
  /** Why the walk ended before its end; null where it did not. */
  failure: string | null
}

// RFC 9989 4.10: of a name with eight labels or more, the second question is about its last seven.
const maxLabelsAfterFirst = 7

/** Asks each name once, however many walks pass it. */
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
  // RFC 9989 4.10: what does not begin with the version is no record; of several records, none counts.
  const texts = answer.status === 'ok' ? answer.records.filter(isDmarcRecord) : []
  const record = texts.length === 1 ? parseDmarcRecord(texts[0]!) : null
  return record === null ? { status: 'absent' } : { status: 'found', record }
}

/**
 * The records at the domain and above it, in at most eight questions, one after the other: a record that says whether its
 * domain is a public suffix ends the walk, and so does an answer that cannot be had now.
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

/** The names that a walk from the domain goes through, the domain first. */
function namesOf(domain: string): string[] {
  const labels = domain.split('.')
  const above = labels.slice(1).slice(-maxLabelsAfterFirst)
  return [domain, ...above.map((_, at) => above.slice(at).join('.'))]
}

/**
 * The organizational domain, of a walk from `start` that came to its end: by its records, and where there are none by the
 * public suffix list.
 */
export function organizationalDomain(start: string, found: readonly FoundRecord[]): string {
  for (const { domain, record } of found) {
    // RFC 9989 4.10.2: with psd=n it is this one, with psd=y the one a label below, unless the walk began there.
    if (record.psd === 'no') return domain
    if (domain !== start && isSuffix(domain, record)) return childTowards(start, domain)
  }
  // RFC 9989 4.10.2: otherwise it is the domain of the record with the fewest labels.
  return found.at(-1)?.domain ?? registeredDomain(start)
}

// QUIRK: a registry that publishes a record without a psd tag would make its customers one organization, each of which
// could send in the name of any other (RFC 9989 11.8). Where the record says nothing, the public suffix list does.
function isSuffix(domain: string, { psd }: DmarcRecord): boolean {
  return psd === 'yes' || (psd === 'unsaid' && isPublicSuffix(domain))
}

function childTowards(start: string, parent: string): string {
  const labels = parent.split('.').length + 1
  return start.split('.').slice(-labels).join('.')
}

/** Whose policy is that of an author's domain. */
export type Discovery =
  | { status: 'found'; policyDomain: string; record: DmarcRecord; organization: Organization }
  | { status: 'absent'; organizationalDomain: string }
  | { status: 'temporary'; reason: string }

/** The organizational domain; where the walk failed, a name that it is at or below, and why. */
export type Organization =
  | { status: 'known'; domain: string }
  | { status: 'temporary'; within: string; reason: string }

/**
 * RFC 9989 4.10.1: the record of the author's domain, or else that of its organizational domain, or else that of the
 * public suffix above.
 */
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
