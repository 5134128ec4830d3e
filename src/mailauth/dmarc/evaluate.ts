// DMARC (RFC 9989): whether the author's domain vouches for a message, by SPF or DKIM, and what it asks for where it does not.
import type { AuthResult } from '../../base/auth-result.ts'
import { type Asked, type Lookup, recordLookups } from '../lookup.ts'
import { Aligner, type Alignment, type Author } from './align.ts'
import type { AuthorDomains } from './author-domain.ts'
import { toDnsName } from './dns-name.ts'
import type { DmarcRecord, Policy } from './record.ts'
import { type Discovery, discoverPolicy, type RecordLookup, recordLookup } from './tree-walk.ts'

/** What a check found of a domain: for SPF that of MAIL FROM, or of HELO where the path is null; for DKIM the d= tag. */
export interface CheckedDomain {
  result: AuthResult
  domain: string
}

export interface DmarcFacts {
  from: AuthorDomains
  /** Null where SPF was not checked. */
  spf: CheckedDomain | null
  dkim: readonly CheckedDomain[]
  /** Whether a trusted sealer says that the message was authentic when it saw it: its policy is not applied then. */
  arcVouches?: boolean
}

export type Identifier = 'dkim' | 'spf'

export interface DmarcVerdict {
  result: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror'
  /** In words for people; it holds names in A-labels, and otherwise nothing that the message or DNS says. */
  reason: string
  /** The author's domain; of several, the one that the verdict is about. Null where there is none. */
  domain: string | null
  /** Null where it could not be known now. */
  organizationalDomain: string | null
  /** The domain whose record applies: the author's, its organization's, or that of the suffix above. */
  policyDomain: string | null
  /** What that record asks for mail of this author that fails: by `p`, `sp` or `np`, one step milder under `t=y`. */
  policy: Policy | null
  /** What is to be done with this message: `policy` where it failed and no trusted sealer vouches for it, else `none`. */
  disposition: Policy
  /** Why less is done with a message that failed than the record's own words ask for. */
  override: 'policy_test_mode' | 'trusted_forwarder' | null
  record: DmarcRecord | null
  /** By what the author's domain vouches, all that do. */
  alignedBy: readonly Identifier[]
  /** Where the domain asks for reports, as it wrote them. */
  rua: readonly string[]
  asked: Asked[]
}

/**
 * Evaluates a message's DMARC. A pass takes one sound From field of one domain (`from.fault` null) with which a passing
 * SPF or DKIM domain aligns. Of a From field with a fault every domain is evaluated, and the strictest policy of those that
 * fail counts (RFC 9989 11.5). Asks DNS at most 58 questions, 2 for most mail; never rejects.
 */
export async function evaluateDmarc(lookup: Lookup, facts: DmarcFacts): Promise<DmarcVerdict> {
  const recorded = recordLookups(lookup)
  const message = new Message(recorded.lookup, facts)
  const authors: FoundAuthor[] = []
  // Against a first author whose names use up what a mail may ask of DNS: the policies of all are found before that.
  for (const domain of facts.from.domains) authors.push(await message.discover(domain))
  const verdicts: Evaluated[] = []
  for (const author of authors) verdicts.push(await message.evaluate(author))
  const { fault } = facts.from
  const verdict = fault === null && verdicts.length === 1 ? verdicts[0]! : strictest(verdicts, fault)
  return { ...verdict, ...decideDisposition(verdict, facts), asked: recorded.asked() }
}

/** An author's domain, and what it asks for; null where it has no record. */
interface FoundAuthor {
  domain: string
  discovery: Discovery
  wish: { asked: Policy; failure: string | null } | null
}

type Evaluated = Omit<DmarcVerdict, 'asked' | 'disposition'>

const nothing = {
  ...{ organizationalDomain: null, policyDomain: null, policy: null, override: null, record: null },
  ...{ alignedBy: [], rua: [] },
}

const strictness: Record<Policy, number> = { none: 0, quarantine: 1, reject: 2 }

function strictest(verdicts: readonly Evaluated[], fault: string | null): Evaluated {
  const reason = fault ?? 'there is no author domain'
  const failed = verdicts.filter(({ result }) => result === 'fail')
  const [first] = failed.toSorted((a, b) => strictness[b.policy ?? 'none'] - strictness[a.policy ?? 'none'])
  // RFC 9989 11.5: otherwise a second address would be a way round the policy of the first.
  if (first !== undefined) return { ...first, reason: `${reason}; ${first.domain}: ${first.reason}` }
  return { ...nothing, result: 'permerror', reason, domain: verdicts[0]?.domain ?? null }
}

function decideDisposition(
  { result, policy, override }: Evaluated,
  { arcVouches }: DmarcFacts,
): Pick<DmarcVerdict, 'disposition' | 'override'> {
  if (result !== 'fail' || policy === null) return { disposition: 'none', override: null }
  if (arcVouches && policy !== 'none') return { disposition: 'none', override: 'trusted_forwarder' }
  return { disposition: policy, override }
}

/** One message, whose author domains share what DNS was asked. */
class Message {
  readonly #lookup: Lookup
  readonly #ask: RecordLookup
  readonly #aligner: Aligner
  readonly #identifiers: readonly [by: Identifier, domain: string][]
  /** Of these DNS did not say whether they pass. */
  readonly #unverified: readonly [by: Identifier, domain: string][]

  constructor(lookup: Lookup, { spf, dkim }: DmarcFacts) {
    this.#lookup = lookup
    this.#ask = recordLookup(lookup)
    this.#aligner = new Aligner(this.#ask)
    const withResult = (result: AuthResult) => [
      ...domainsOf('spf', spf === null ? [] : [spf], result),
      ...domainsOf('dkim', dkim, result),
    ]
    this.#identifiers = withResult('pass')
    this.#unverified = withResult('temperror')
  }

  async discover(domain: string): Promise<FoundAuthor> {
    const discovery = await discoverPolicy(this.#ask, domain)
    return {
      ...{ domain, discovery },
      wish: discovery.status === 'found' ? await this.#policyFor(domain, discovery) : null,
    }
  }

  async evaluate({ domain, discovery, wish }: FoundAuthor): Promise<Evaluated> {
    if (discovery.status !== 'found') return { ...nothing, domain, ...withoutRecord(discovery) }
    const { record, organization, policyDomain } = discovery
    const known = {
      ...{ domain, policyDomain, record, rua: record.rua },
      organizationalDomain: organization.status === 'known' ? organization.domain : null,
    }
    if (record.p === null) {
      const reason = `the record of ${policyDomain} has no policy that can be followed`
      return { ...nothing, ...known, result: 'permerror', reason }
    }
    const author = { domain, organization }
    const { alignedBy, failure } = await this.#align(author, record)
    const { asked, failure: unknownPolicy } = wish!
    const policy = record.isTesting ? milder[asked] : asked
    const override = policy === asked ? null : ('policy_test_mode' as const)
    const verdict = { ...known, alignedBy, policy, override }
    if (alignedBy.length > 0) {
      return { ...verdict, result: 'pass', reason: `${alignedBy.join(' and ')} vouched for ${domain}` }
    }
    const unknown = failure ?? unknownPolicy ?? (await this.#whyNotVerified(author, record))
    if (unknown !== null) return { ...verdict, policy: null, result: 'temperror', reason: unknown }
    return { ...verdict, result: 'fail', reason: this.#whyNothingAligns() }
  }

  async #align(
    author: Author,
    record: DmarcRecord,
  ): Promise<{ alignedBy: Identifier[]; failure: string | null }> {
    const alignments: [Identifier, Alignment][] = []
    for (const [by, identifier] of this.#identifiers) {
      const mode = by === 'spf' ? record.aspf : record.adkim
      alignments.push([by, await this.#aligner.align(identifier, author, mode)])
    }
    const aligned = alignments.filter(([, { status }]) => status === 'aligned').map(([by]) => by)
    const unknown = alignments.map(([, alignment]) => alignment).find(({ status }) => status === 'unknown')
    return {
      alignedBy: [...new Set(aligned)].sort(),
      failure: unknown?.status === 'unknown' ? unknown.reason : null,
    }
  }

  // RFC 9989 5.3.6: where DNS queries that it takes do not complete, the message neither passes nor fails.
  async #whyNotVerified(author: Author, record: DmarcRecord): Promise<string | null> {
    for (const [by, identifier] of this.#unverified) {
      const mode = by === 'spf' ? record.aspf : record.adkim
      const { status } = await this.#aligner.align(identifier, author, mode)
      if (status === 'aligned' || status === 'unknown')
        return `whether ${by} passes for ${identifier} is not known now`
    }
    return null
  }

  /** What the record says for mail of the domain; and why that is not known, where it depends on what DNS did not say. */
  async #policyFor(
    domain: string,
    { record, policyDomain }: Extract<Discovery, { status: 'found' }>,
  ): Promise<{ asked: Policy; failure: string | null }> {
    const p = record.p ?? 'none'
    if (policyDomain === domain) return { asked: p, failure: null }
    // RFC 9989 4.10.1: below the record's domain sp counts; np where the author's does not exist; p where they are absent.
    const sp = record.sp ?? p
    const np = record.np ?? sp
    const existence = np === sp ? 'exists' : await existenceOf(this.#lookup, domain)
    if (existence !== 'unknown') return { asked: existence === 'exists' ? sp : np, failure: null }
    return { asked: sp, failure: `whether ${domain} exists is not known now` }
  }

  #whyNothingAligns(): string {
    if (this.#identifiers.length === 0) return 'neither SPF nor DKIM passed'
    return 'what passed SPF or DKIM is not of its organization'
  }
}

// RFC 9989 4.7: t=y asks for what is one level below the policy.
const milder: Record<Policy, Policy> = { reject: 'quarantine', quarantine: 'none', none: 'none' }

function domainsOf(
  by: Identifier,
  checked: readonly CheckedDomain[],
  wanted: AuthResult,
): [Identifier, string][] {
  const domains = checked.filter(({ result }) => result === wanted).map(({ domain }) => toDnsName(domain))
  const distinct = [...new Set(domains)].filter((domain) => domain !== null)
  // The shortest names first: what an organization signs with stands near the top, and the number of walks is bounded.
  return distinct.toSorted((a, b) => a.length - b.length).map((domain) => [by, domain])
}

function withoutRecord(
  discovery: Exclude<Discovery, { status: 'found' }>,
): Pick<Evaluated, 'result' | 'reason' | 'organizationalDomain'> {
  if (discovery.status === 'temporary') {
    return { result: 'temperror', reason: discovery.reason, organizationalDomain: null }
  }
  const { organizationalDomain } = discovery
  return { result: 'none', reason: 'its domain publishes no DMARC record', organizationalDomain }
}

/** RFC 9989 A.4: a name exists where any record does; one question tells, for the name of an alias a second one. */
async function existenceOf(lookup: Lookup, domain: string): Promise<'exists' | 'absent' | 'unknown'> {
  for (const type of ['A', 'CNAME'] as const) {
    const { status } = await lookup(type, domain)
    if (status === 'temporary') return 'unknown'
    // An alias whose target is gone is answered as if its own name did not exist; asked for itself, it is there.
    if (status !== 'nxdomain') return 'exists'
  }
  return 'absent'
}
