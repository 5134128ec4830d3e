// What becomes of a mail by who sent it: what the checks found is kept with it, and a forgery whose domain wants it refused is.
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import type { DnsCache } from '../../dns/cache.ts'
import { type Reply, reply } from '../../smtp/reply.ts'
import type { Envelope } from '../../smtp/server/backend.ts'
import { networksOf } from '../../smtp/server/peer-address.ts'
import type { MailFindings } from '../../store/messages.ts'
import { Evaluation, type Verdicts } from './evaluation.ts'
import { toFindings } from './findings.ts'

export interface SenderChecksDeps {
  dns: Pick<DnsCache, 'lookupFor'>
  clock: Clock
  log: Log
  /** The name of this server. */
  hostname: string
  arcTrusted: readonly string[]
  /** What is done with mail that fails DMARC where its domain wants it refused. */
  dmarc: 'refuse' | 'report'
}

/** What is kept with the mail, and the reply where it is not taken. */
export interface Decision {
  findings: MailFindings
  refusal: Reply | null
}

/** The checks of a node's mail server. */
export class SenderChecks {
  readonly #deps: SenderChecksDeps
  readonly #arcTrusted: ReadonlySet<string>
  readonly #begun = new WeakMap<Envelope, Evaluation>()

  constructor(deps: SenderChecksDeps) {
    this.#deps = deps
    this.#arcTrusted = new Set(deps.arcTrusted)
  }

  /**
   * The evaluation of the transaction's mail, begun when this is called first: with a recipient that is taken, so that
   * whoever guesses names has us ask DNS for nothing.
   */
  of(envelope: Envelope): Evaluation {
    const begun = this.#begun.get(envelope)
    if (begun) return begun
    const { dns, clock, hostname } = this.#deps
    const lookup = dns.lookupFor(networksOf(envelope.peer.address)[1])
    const evaluation = new Evaluation({ lookup, clock, hostname, arcTrusted: this.#arcTrusted }, envelope)
    this.#begun.set(envelope, evaluation)
    return evaluation
  }

  /** `isForInbox`: some of it goes to customers; what is for the service's own addresses alone is refused for nothing. */
  decide({ peer, from }: Envelope, verdicts: Verdicts, { isForInbox }: { isForInbox: boolean }): Decision {
    const findings = toFindings(verdicts, { ip: peer.address, helo: peer.helo, from: from.address })
    for (const [method, result] of Object.entries(findings.authentication))
      meters.verdicts.inc({ method, result })
    const refusal = isForInbox ? this.#refusal(verdicts) : null
    if (refusal)
      this.#deps.log.info(
        { peer: peer.address, reason: verdicts.dmarc.reason },
        'a mail was refused by DMARC',
      )
    return { findings, refusal }
  }

  #refusal({ dmarc: { disposition, domain, policyDomain } }: Verdicts): Reply | null {
    if (disposition !== 'reject' || this.#deps.dmarc === 'report') return null
    // RFC 7372 3.3: X.7.26, multiple authentication checks failed.
    return reply(
      ...([550, '5.7.26'] as const),
      `Mail from ${domain} fails DMARC, and ${policyDomain} wants such mail refused`,
    )
  }
}
