// Finds out who sent a mail while it comes in: from its first recipient on whose the client is, with its header which
// signatures it bears, with its end whether they are of this body, and what its author's domain says of all that.
import type { Clock } from '../../base/clock.ts'
import type { ArcVerdict } from '../../mailauth/arc/validate-arc.ts'
import { vouchingSealer } from '../../mailauth/arc/vouching-sealer.ts'
import { boundLookups } from '../../mailauth/bound-lookups.ts'
import { readAuthorDomains } from '../../mailauth/dmarc/author-domain.ts'
import { DmarcEvaluation, type DmarcVerdict, vouchedFor } from '../../mailauth/dmarc/evaluate.ts'
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
  /** d= of the trusted sealer that says that DMARC passed, or would have, when the mail came to it; null: there is none. */
  vouchedBy: string | null
}

/** What DNS does not say so long after the client, or the header, is known is `temperror`. */
const deadlineMs = 10_000
/**
 * Of the client and its domain, and of the header's domains; honest mail asks for 5 to 15. The second is more than all
 * its checks ever ask: with names of his own nobody can use up what the author's policy is asked with.
 */
const maxQuestions = { client: 60, header: 100 }

/** To be given the message as it comes, then `end`. */
export class Evaluation {
  readonly #deps: EvaluationDeps
  readonly #spf: Promise<SpfVerdict>
  readonly #reverseDns: Promise<ReverseDnsVerdict>
  readonly #split: HeaderSplit
  #dmarc: DmarcEvaluation | null = null
  #verifier: MailVerifier | null = null

  /** Begins with the client. */
  constructor(deps: EvaluationDeps, { peer, from }: Pick<Envelope, 'peer' | 'from'>) {
    this.#deps = deps
    const lookup = this.#boundLookups(maxQuestions.client)
    const { hostname, clock } = deps
    const client = { ip: peer.address, helo: peer.helo, from: from.address, hostname, at: clock.now() }
    this.#spf = checkSpf(lookup, client)
    this.#reverseDns = checkReverseDns(lookup, peer.address)
    // A fault of ours is thrown to who asks for the verdict; of a mail that never ends nobody does, and the node would end.
    for (const begun of [this.#spf, this.#reverseDns]) begun.catch(() => {})
    this.#split = new HeaderSplit({
      header: (bytes) => bytes && this.#readHeader(bytes),
      body: (chunk) => this.#verifier?.body(chunk),
    })
  }

  /** The next bytes of the message, in their order. */
  write(chunk: Buffer): void {
    this.#split.write(chunk)
  }

  /** All bytes are there. Waits for DNS, until the deadline. Null where the header is more than 256 KiB: nobody knows whose it is. */
  async end(): Promise<Verdicts | null> {
    this.#split.end()
    if (this.#verifier === null) return null
    const [spf, reverseDns, mail] = await Promise.all([this.#spf, this.#reverseDns, this.#verifier.end()])
    return { spf, reverseDns, ...mail, ...(await this.#evaluateDmarc(spf, mail)) }
  }

  #boundLookups(questions: number): Lookup {
    const { lookup, clock } = this.#deps
    return boundLookups(lookup, { maxQuestions: questions, untilMs: clock.monotonicMs() + deadlineMs, clock })
  }

  #readHeader(header: Buffer): void {
    const lookup = this.#boundLookups(maxQuestions.header)
    this.#dmarc = new DmarcEvaluation(lookup, readAuthorDomains(header))
    this.#verifier = new MailVerifier(lookup, { nowSeconds: this.#deps.clock.nowMs() / 1000 })
    this.#verifier.header(header)
  }

  async #evaluateDmarc(spf: SpfVerdict, { dkim, arc }: MailVerdicts) {
    const signers = dkim.flatMap(({ result, domain }) => (domain === null ? [] : [{ result, domain }]))
    const dmarc = await this.#dmarc!.verdict({ spf, dkim: signers })
    const vouchedBy = this.#vouchingSealer(arc, dmarc)
    return { dmarc: vouchedBy === null ? dmarc : vouchedFor(dmarc), vouchedBy }
  }

  #vouchingSealer(arc: ArcVerdict, { domain, organizationalDomain }: DmarcVerdict): string | null {
    if (domain === null) return null
    const organization = organizationalDomain ?? domain
    const isAligned = (other: string) => other === organization || other.endsWith(`.${organization}`)
    return vouchingSealer(arc, this.#deps.arcTrusted, { domain, isAligned })?.sealer ?? null
  }
}
