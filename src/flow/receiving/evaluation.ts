// Finds out who sent a mail while it comes in: from its first recipient on whose the client is, with its header which
// signatures it bears, with its end whether they are of this body, and what its author's domain says of all that.
import type { Clock } from '../../base/clock.ts'
import type { ArcVerdict } from '../../mailauth/arc/validate-arc.ts'
import { vouchingSealer } from '../../mailauth/arc/vouching-sealer.ts'
import { boundLookups } from '../../mailauth/bound-lookups.ts'
import { type AuthorDomains, readAuthorDomains } from '../../mailauth/dmarc/author-domain.ts'
import { type DmarcVerdict, evaluateDmarc } from '../../mailauth/dmarc/evaluate.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { type MailVerdicts, MailVerifier } from '../../mailauth/mail-verifier.ts'
import { checkReverseDns, type ReverseDnsVerdict } from '../../mailauth/reverse-dns.ts'
import { checkSpf, type SpfVerdict } from '../../mailauth/spf/check-spf.ts'
import type { Envelope } from '../../smtp/server/backend.ts'
import { HeaderSplit } from './header-split.ts'

export interface EvaluationDeps {
  /** Look-ups on behalf of this client's network. */
  lookup: Lookup
  clock: Clock
  /** The name of this server. */
  hostname: string
  /** Domains whose word is taken for what a mail was when they received it (RFC 8617). */
  arcTrusted: ReadonlySet<string>
}

/** What every check found. */
export interface Verdicts extends MailVerdicts {
  spf: SpfVerdict
  reverseDns: ReverseDnsVerdict
  dmarc: DmarcVerdict
}

/** What DNS does not say so long after the client, or the header, is known is `temperror`. */
const deadlineMs = 10_000
/** Of the client and its domain; of the header's domains. Honest mail asks for 5 to 15. */
const maxQuestions = { client: 60, header: 60 }

/** To be given the message as it comes, then `end`. */
export class Evaluation {
  readonly #deps: EvaluationDeps
  readonly #spf: Promise<SpfVerdict>
  readonly #reverseDns: Promise<ReverseDnsVerdict>
  readonly #split: HeaderSplit
  #lookup: Lookup | null = null
  #author: AuthorDomains = { domains: [], fault: 'there is no header' }
  #verifier: MailVerifier | null = null

  /** Begins with the client. */
  constructor(deps: EvaluationDeps, { peer, from }: Pick<Envelope, 'peer' | 'from'>) {
    this.#deps = deps
    const lookup = this.#boundLookups(maxQuestions.client)
    const { hostname, clock } = deps
    const client = { ip: peer.address, helo: peer.helo, from: from.address, hostname, at: clock.now() }
    this.#spf = checkSpf(lookup, client)
    this.#reverseDns = checkReverseDns(lookup, peer.address)
    this.#split = new HeaderSplit({
      header: (block, isCut) => this.#readHeader(block, isCut),
      body: (chunk) => this.#verifier?.body(chunk),
    })
  }

  /** The next bytes of the message, in their order. */
  write(chunk: Buffer): void {
    this.#split.write(chunk)
  }

  /** All bytes are there. Waits for DNS, until the deadline. */
  async end(): Promise<Verdicts> {
    this.#split.end()
    const [spf, reverseDns, mail] = await Promise.all([this.#spf, this.#reverseDns, this.#verifier!.end()])
    return { spf, reverseDns, ...mail, dmarc: await this.#evaluateDmarc(spf, mail) }
  }

  #boundLookups(questions: number): Lookup {
    const { lookup, clock } = this.#deps
    return boundLookups(lookup, { maxQuestions: questions, untilMs: clock.monotonicMs() + deadlineMs, clock })
  }

  #readHeader(block: Buffer, isCut: boolean): void {
    this.#lookup = this.#boundLookups(maxQuestions.header)
    this.#author = readAuthorDomains(block)
    if (isCut) this.#author = { ...this.#author, fault: 'the header is too large to be read whole' }
    this.#verifier = new MailVerifier(this.#lookup, { nowSeconds: this.#deps.clock.nowMs() / 1000 })
    if (!isCut) this.#verifier.header(block)
  }

  async #evaluateDmarc(spf: SpfVerdict, { dkim, arc }: MailVerdicts): Promise<DmarcVerdict> {
    const from = this.#author
    const signers = dkim.flatMap(({ result, domain }) => (domain === null ? [] : [{ result, domain }]))
    const dmarc = await evaluateDmarc(this.#lookup!, { from, spf, dkim: signers })
    if (dmarc.disposition === 'none' || !this.#isVouchedFor(arc, dmarc)) return dmarc
    return { ...dmarc, disposition: 'none', override: 'trusted_forwarder' }
  }

  #isVouchedFor(arc: ArcVerdict, { domain, organizationalDomain }: DmarcVerdict): boolean {
    if (domain === null) return false
    const organization = organizationalDomain ?? domain
    const isAligned = (other: string) => other === organization || other.endsWith(`.${organization}`)
    return vouchingSealer(arc, this.#deps.arcTrusted, { domain, isAligned }) !== null
  }
}
