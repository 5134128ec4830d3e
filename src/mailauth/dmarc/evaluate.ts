// DMARC (RFC 9989): whether the author's domain vouches for a message, by SPF or DKIM, and what it asks for where it does not.
import type { AuthResult } from '../../base/auth-result.ts'
import { type Asked, type Lookup, recordLookups } from '../lookup.ts'
import { Aligner, type Author } from './align.ts'
import type { AuthorDomains } from './author-domain.ts'
import { toDnsName } from './dns-name.ts'
import type { DmarcRecord, Policy } from './record.ts'
import { type Discovery, discoverPolicy, type RecordLookup, recordLookup } from './tree-walk.ts'

/** What a check found of a domain: for SPF that of MAIL FROM, or of HELO where the path is null; for DKIM the d= tag. */
export interface CheckedDomain {
  result: AuthResult
  domain: string
}

export interface CheckedDomains {
  /** Null where SPF was not checked. */
  spf: CheckedDomain | null
  dkim: readonly CheckedDomain[]
}

export type Identifier = 'dkim' | 'spf'

interface CheckedIdentifier {
  by: Identifier
  /** In A-labels. */
  domain: string
  /** False where DNS does not say whether it passes. */
  isPassing: boolean
}

/** What the author's domain publishes; `policy` is null where no record was found. */
interface Published {
  domain: string
  discovery: Discovery
  policy: { asked: Policy; failure: string | null } | null
}

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

/** Evaluates a message's DMARC at once; see `DmarcEvaluation`. Never rejects. */
export async function evaluateDmarc(
  lookup: Lookup,
  { from, ...checked }: CheckedDomains & { from: AuthorDomains },
): Promise<DmarcVerdict> {
  return await new DmarcEvaluation(lookup, from).verdict(checked)
}

/**
 * One message's DMARC. A pass takes one sound From field of one domain (`from.fault` null) with which a passing SPF or
 * DKIM domain aligns. Of a From field with a fault every domain is evaluated, and the strictest policy of those that fail
 * counts (RFC 9989 11.5), or else that of one is not known now. What decides it and is not to be known now is `temperror`.
 * Asks DNS at most 58 questions, 2 for most mail.
 *
 * The policies are asked for as soon as the author is known, so that a sender whose own names are slow to answer cannot
 * have the time run out before them.
 */
export class DmarcEvaluation {
  readonly #from: AuthorDomains
  readonly #lookup: Lookup
  readonly #asked: () => Asked[]
  readonly #ask: RecordLookup
  readonly #aligner: Aligner
  readonly #published: Promise<Published>[]

  constructor(lookup: Lookup, from: AuthorDomains) {
    const recorded = recordLookups(lookup)
    this.#from = from
    this.#lookup = recorded.lookup
    this.#asked = recorded.asked
    this.#ask = recordLookup(recorded.lookup)
    this.#aligner = new Aligner(this.#ask)
    this.#published = from.domains.map((domain) => this.#discover(domain))
  }

  /** Never rejects. */
  async verdict({ spf, dkim }: CheckedDomains): Promise<DmarcVerdict> {
    const identifiers = [...identifiersOf('spf', spf === null ? [] : [spf]), ...identifiersOf('dkim', dkim)]
    const verdicts: Evaluated[] = []
    for (const published of this.#published) verdicts.push(await this.#evaluate(await published, identifiers))
    const { fault } = this.#from
    const verdict = fault === null && verdicts.length === 1 ? verdicts[0]! : strictest(verdicts, fault)
    return { ...verdict, ...decideDisposition(verdict), asked: this.#asked() }
  }

  async #discover(domain: string): Promise<Published> {
    const discovery = await discoverPolicy(this.#ask, domain)
    const policy = discovery.status === 'found' ? await this.#policyFor(domain, discovery) : null
    return { domain, discovery, policy }
  }

  async #evaluate(
    { domain, discovery, policy: published }: Published,
    identifiers: readonly CheckedIdentifier[],
  ): Promise<Evaluated> {
    if (discovery.status !== 'found') return { ...nothing, domain, ...withoutRecord(discovery) }
    const { record, organization, policyDomain } = discovery
    const known = {
      domain,
      policyDomain,
      record,
      rua: record.rua,
      organizationalDomain: organization.status === 'known' ? organization.domain : null,
    }
    if (record.p === null) {
      const reason = `the record of ${policyDomain} has no policy that can be followed`
      return { ...nothing, ...known, result: 'permerror', reason }
    }
    const { alignedBy, failure } = await this.#align({ domain, organization }, record, identifiers)
    const { asked, failure: unknownPolicy } = published!
    const policy = record.isTesting ? milder[asked] : asked
    const override = policy === asked ? null : ('policy_test_mode' as const)
    const verdict = { ...known, alignedBy, policy, override }
    if (alignedBy.length > 0) {
      return { ...verdict, result: 'pass', reason: `${alignedBy.join(' and ')} vouched for ${domain}` }
    }
    const unknown = failure ?? unknownPolicy
    if (unknown !== null) return { ...verdict, policy: null, result: 'temperror', reason: unknown }
    return { ...verdict, result: 'fail', reason: whyNothingAligns(identifiers) }
  }

  async #align(
    author: Author,
    record: DmarcRecord,
    identifiers: readonly CheckedIdentifier[],
  ): Promise<{ alignedBy: Identifier[]; failure: string | null }> {
    const aligned = new Set<Identifier>()
    let failure: string | null = null
    for (const { by, domain, isPassing } of identifiers) {
      const mode = by === 'spf' ? record.aspf : record.adkim
      const alignment = await this.#aligner.align(domain, author, mode)
      if (alignment.status === 'unknown') failure ??= alignment.reason
      if (alignment.status !== 'aligned') continue
      if (isPassing) aligned.add(by)
      // RFC 9989 5.3.6: where DNS does not answer what it takes to know, the message neither passes nor fails.
      else failure ??= `whether ${by} passes for ${domain} is not known now`
    }
    return { alignedBy: [...aligned].sort(), failure }
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
}

/** The same verdict where a trusted sealer says that the message was authentic when it saw it: no policy is applied. */
export function vouchedFor(verdict: DmarcVerdict): DmarcVerdict {
  if (verdict.disposition === 'none') return verdict
  return { ...verdict, disposition: 'none', override: 'trusted_forwarder' }
}

type Evaluated = Omit<DmarcVerdict, 'asked' | 'disposition'>

const nothing = {
  organizationalDomain: null,
  policyDomain: null,
  policy: null,
  override: null,
  record: null,
  alignedBy: [],
  rua: [],
}

const strictness: Record<Policy, number> = { none: 0, quarantine: 1, reject: 2 }

function strictest(verdicts: readonly Evaluated[], fault: string | null): Evaluated {
  const reason = fault ?? 'there is no author domain'
  const failed = verdicts.filter(({ result }) => result === 'fail')
  const [first] = failed.toSorted((a, b) => strictness[b.policy ?? 'none'] - strictness[a.policy ?? 'none'])
  // RFC 9989 11.5: otherwise a second address would be a way round the policy of the first.
  const counted = first ?? verdicts.find(({ result }) => result === 'temperror')
  if (counted !== undefined) return { ...counted, reason: `${reason}; ${counted.domain}: ${counted.reason}` }
  return { ...nothing, result: 'permerror', reason, domain: verdicts[0]?.domain ?? null }
}

function decideDisposition({
  result,
  policy,
  override,
}: Evaluated): Pick<DmarcVerdict, 'disposition' | 'override'> {
  if (result !== 'fail' || policy === null) return { disposition: 'none', override: null }
  return { disposition: policy, override }
}

function whyNothingAligns(identifiers: readonly CheckedIdentifier[]): string {
  if (identifiers.length === 0) return 'neither SPF nor DKIM passed'
  return 'what passed SPF or DKIM is not of its organization'
}

// RFC 9989 4.7: t=y asks for what is one level below the policy.
const milder: Record<Policy, Policy> = { reject: 'quarantine', quarantine: 'none', none: 'none' }

/** Those that pass, and those of which that is not known now. */
function identifiersOf(by: Identifier, checked: readonly CheckedDomain[]): CheckedIdentifier[] {
  const passing = domainsWith('pass', checked)
  const unknown = domainsWith('temperror', checked).filter((domain) => !passing.includes(domain))
  return [
    ...passing.map((domain) => ({ by, domain, isPassing: true })),
    ...unknown.map((domain) => ({ by, domain, isPassing: false })),
  ]
}

/** The shortest names first: what an organization signs with stands near the top, and the number of walks is bounded. */
function domainsWith(wanted: AuthResult, checked: readonly CheckedDomain[]): string[] {
  const domains = checked.filter(({ result }) => result === wanted).map(({ domain }) => toDnsName(domain))
  return [...new Set(domains)].filter((domain) => domain !== null).sort((a, b) => a.length - b.length)
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
