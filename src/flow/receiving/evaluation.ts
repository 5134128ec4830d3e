// Evaluates a mail's sender while the mail arrives: SPF and reverse DNS first, then DKIM, ARC and DMARC.
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
import { HeaderSplit } from '../header-split.ts'

export interface EvaluationDeps {
  /** Look-ups on behalf of this client's network. */
  lookup: Lookup
  clock: Clock
  /** The name of this server. */
  hostname: string
  /** Domains that are trusted to report the result of their own checks (RFC 8617). */
  arcTrusted: ReadonlySet<string>
}

/** The results of all checks. */
export interface Verdicts extends MailVerdicts {
  spf: SpfVerdict
  reverseDns: ReverseDnsVerdict
  dmarc: DmarcVerdict
  /**
   * d= of the trusted sealer that reports a DMARC pass on arrival there, or an aligned SPF or DKIM pass. Null: none does.
   */
  vouchedBy: string | null
}

/**
 * A DNS answer after this time is `temperror`. The client's checks and the header's checks each count from their own start.
 */
const deadlineMs = 10_000
/**
 * The most DNS queries about the client and its domain, and about the header's domains. Legitimate mail needs 5 to 15. The
 * checks of a header never need 100, so a sender's own domains cannot use up the queries for the author's policy.
 */
const maxQuestions = { client: 60, header: 100 }

/** Takes the bytes of the message as they arrive, then `end`. */
export class Evaluation {
  readonly #deps: EvaluationDeps
  readonly #spf: Promise<SpfVerdict>
  readonly #reverseDns: Promise<ReverseDnsVerdict>
  readonly #split: HeaderSplit
  #dmarc: DmarcEvaluation | null = null
  #verifier: MailVerifier | null = null

  /** Starts the checks of the client. */
  constructor(deps: EvaluationDeps, { peer, from }: Pick<Envelope, 'peer' | 'from'>) {
    this.#deps = deps
    const lookup = this.#boundLookups(maxQuestions.client)
    const { hostname, clock } = deps
    const client = { ip: peer.address, helo: peer.helo, from: from.address, hostname, at: clock.now() }
    this.#spf = checkSpf(lookup, client)
    this.#reverseDns = checkReverseDns(lookup, peer.address)
    // A promise that rejects is a fault of ours, which `end` reports. Without this handler, a mail that never ends would
    // leave the rejection unhandled, which ends the node.
    for (const begun of [this.#spf, this.#reverseDns]) begun.catch(() => {})
    this.#split = new HeaderSplit({
      header: (bytes) => bytes && this.#readHeader(bytes),
      body: (chunk) => this.#verifier?.body(chunk),
    })
  }

  /** Takes the next bytes of the message, in order. */
  write(chunk: Buffer): void {
    this.#split.write(chunk)
  }

  /**
   * The verdicts after the last byte. Waits for DNS until the deadline. Null if the header exceeds 256 KiB, because its
   * author is then unknown.
   */
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
