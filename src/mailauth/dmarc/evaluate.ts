// DMARC (RFC 9989): whether the author's domain vouches for a message by SPF or DKIM, and the policy it asks for otherwise.
import type { AuthResult } from '../../base/auth-result.ts'
import { type Asked, type Lookup, recordLookups } from '../lookup.ts'
import { Aligner, type Author } from './align.ts'
import type { AuthorDomains } from './author-domain.ts'
import { toDnsName } from './dns-name.ts'
import type { DmarcRecord, Policy } from './record.ts'
import { type Discovery, discoverPolicy, type RecordLookup, recordLookup } from './tree-walk.ts'

/** The result of a check for one domain. SPF: the domain of MAIL FROM, or of HELO if the path is null. DKIM: the d= tag. */
export interface CheckedDomain {
  result: AuthResult
  domain: string
}

export interface CheckedDomains {
  /** Null if SPF was not checked. */
  spf: CheckedDomain | null
  dkim: readonly CheckedDomain[]
}

export type Identifier = 'dkim' | 'spf'

interface CheckedIdentifier {
  by: Identifier
  /** In A-labels. */
  domain: string
  /** False if DNS does not say whether it passes. */
  isPassing: boolean
}

/** The policy of the author's domain. `policy` is null if no record was found. */
interface Published {
  domain: string
  discovery: Discovery
  policy: { asked: Policy; failure: string | null } | null
}

export interface DmarcVerdict {
  result: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror'
  /** In words for people. Contains names in A-labels, and no other text of the message or of DNS. */
  reason: string
  /** The author's domain. If there are several, the domain that the verdict is about. Null if there is none. */
  domain: string | null
  /** Null if it is not known now. */
  organizationalDomain: string | null
  /** The domain whose record applies: the author's, its organization's, or that of the suffix above. */
  policyDomain: string | null
  /** The policy that the record asks for if this author's mail fails: `p`, `sp` or `np`, one step milder under `t=y`. */
  policy: Policy | null
  /** The policy to apply to this message: `policy` if it failed and no trusted sealer vouches for it, else `none`. */
  disposition: Policy
  /** Why a milder policy than the record's applies to a message that failed. */
  override: 'policy_test_mode' | 'trusted_forwarder' | null
  record: DmarcRecord | null
  /** All identifiers by which the author's domain vouches. */
  alignedBy: readonly Identifier[]
  /** Destinations at which the domain asks for reports, as it wrote them. */
  rua: readonly string[]
  asked: Asked[]
}

/** Evaluates the DMARC of one message in one call. See `DmarcEvaluation`. Never rejects. */
export async function evaluateDmarc(
  lookup: Lookup,
  { from, ...checked }: CheckedDomains & { from: AuthorDomains },
): Promise<DmarcVerdict> {
  return await new DmarcEvaluation(lookup, from).verdict(checked)
}

/**
 * The DMARC evaluation of one message. It passes if one sound From field of one domain (`from.fault` null) aligns with a
 * passing SPF or DKIM domain. If the From field has a fault, every domain is evaluated. The strictest policy of the
 * failing domains counts (RFC 9989 11.5). If none fails, a domain counts whose result is not known now. The result is
 * `temperror` if DNS cannot answer a question that decides it. Asks DNS at most 58 questions, 2 for most mail.
 *
 * Asks for the policies as soon as the author is known. Otherwise a sender's slow names could use up the time first.
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
      // RFC 9989 5.3.6: if DNS does not answer a question that decides, the message neither passes nor fails.
      else failure ??= `whether ${by} passes for ${domain} is not known now`
    }
    return { alignedBy: [...aligned].sort(), failure }
  }

  /**
   * The record's policy for mail of the domain. `failure` says why it is not known, if it depends on an answer that DNS
   * did not give.
   */
  async #policyFor(
    domain: string,
    { record, policyDomain }: Extract<Discovery, { status: 'found' }>,
  ): Promise<{ asked: Policy; failure: string | null }> {
    const p = record.p ?? 'none'
    if (policyDomain === domain) return { asked: p, failure: null }
    // RFC 9989 4.10.1: below the record's domain sp counts, or np if the author's domain does not exist. The default is p.
    const sp = record.sp ?? p
    const np = record.np ?? sp
    const existence = np === sp ? 'exists' : await existenceOf(this.#lookup, domain)
    if (existence !== 'unknown') return { asked: existence === 'exists' ? sp : np, failure: null }
    return { asked: sp, failure: `whether ${domain} exists is not known now` }
  }
}

/** The same verdict if a trusted sealer saw the message as authentic: no policy is applied. */
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
  // RFC 9989 11.5: otherwise a second address would evade the policy of the first.
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

// RFC 9989 4.7: t=y asks for the policy one level below.
const milder: Record<Policy, Policy> = { reject: 'quarantine', quarantine: 'none', none: 'none' }

/** The identifiers that pass, and those whose result is not known now. */
function identifiersOf(by: Identifier, checked: readonly CheckedDomain[]): CheckedIdentifier[] {
  const passing = domainsWith('pass', checked)
  const unknown = domainsWith('temperror', checked).filter((domain) => !passing.includes(domain))
  return [
    ...passing.map((domain) => ({ by, domain, isPassing: true })),
    ...unknown.map((domain) => ({ by, domain, isPassing: false })),
  ]
}

/** Shortest names first: organizations sign with names near the top, and the number of walks is bounded. */
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

/** RFC 9989 A.4: a name exists if any record does. One question is enough, or two if the name is an alias. */
async function existenceOf(lookup: Lookup, domain: string): Promise<'exists' | 'absent' | 'unknown'> {
  for (const type of ['A', 'CNAME'] as const) {
    const { status } = await lookup(type, domain)
    if (status === 'temporary') return 'unknown'
    // If the target of an alias is gone, DNS answers as if the alias did not exist. A question for CNAME finds it.
    if (status !== 'nxdomain') return 'exists'
  }
  return 'absent'
}
