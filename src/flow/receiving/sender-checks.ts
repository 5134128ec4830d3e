// Decides on a mail by its sender: returns the results of the checks, and refuses forged mail if the forged domain's policy
// says so.
import type { Clock } from '../../base/clock.ts'
import { wideNetworkOf } from '../../base/ip-address.ts'
import { meters } from '../../base/meters.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { DnsCache } from '../../dns/cache.ts'
import { type DmarcNote, dmarcNoteOf } from '../../mailauth/dmarc/dmarc-note.ts'
import type { Rspamd } from '../../scan/rspamd.ts'
import { type Reply, reply } from '../../smtp/reply.ts'
import type { Envelope } from '../../smtp/server/backend.ts'
import type { MailFindings } from '../../store/mailbox/messages.ts'
import type { RawRow } from '../../store/mailbox/raws.ts'
import { Evaluation, type Verdicts } from './evaluation.ts'
import { toFindings } from './findings.ts'
import { spamRecord, spamReply } from './spam.ts'

export interface SenderChecksDeps {
  dns: Pick<DnsCache, 'lookupFor' | 'wasHeldUp'>
  clock: Clock
  /** The name of this server. */
  hostname: string
  arcTrusted: readonly string[]
  /** The action for mail that fails DMARC if its domain wants such mail refused. */
  dmarc: 'refuse' | 'report'
  /** The spam engine, or null. */
  rspamd: Pick<Rspamd, 'check'> | null
  blobs: Pick<Blobs, 'read'>
  /** Counts the mail for the report that its author's domain asks for. */
  noteDmarc(note: DmarcNote): void
}

/** A mail that was received completely. */
export interface EvaluatedMail {
  raw: RawRow
  verdicts: Verdicts
  /** The arrival of its last byte, on the monotonic clock. */
  endedMs: number
  /** At least one recipient is a customer's inbox. Mail for the service's own addresses alone is never refused here. */
  isForInbox: boolean
}

/** The findings to store with the mail, and the reply if it is refused. */
export interface Decision {
  findings: MailFindings
  refusal: Reply | null
}

/** The time from the last byte to the reply. */
const deadlineMs = 10_000
const heldUp = reply(451, '4.7.1', 'Too many DNS lookups for mail from your network, try again later')

interface Begun {
  evaluation: Evaluation
  /** On the monotonic clock. */
  atMs: number
}

/** The checks of a node's mail server. */
export class SenderChecks {
  readonly #deps: SenderChecksDeps
  readonly #arcTrusted: ReadonlySet<string>
  readonly #begun = new WeakMap<Envelope, Begun>()

  constructor(deps: SenderChecksDeps) {
    this.#deps = deps
    this.#arcTrusted = new Set(deps.arcTrusted)
  }

  /**
   * The evaluation of the transaction's mail. The first call starts it, at the first accepted recipient. So a client that
   * guesses names causes no DNS queries.
   */
  of(envelope: Envelope): Evaluation {
    const begun = this.#begun.get(envelope)
    if (begun) return begun.evaluation
    const { dns, clock, hostname } = this.#deps
    const lookup = dns.lookupFor(askerOf(envelope))
    const evaluation = new Evaluation({ lookup, clock, hostname, arcTrusted: this.#arcTrusted }, envelope)
    this.#begun.set(envelope, { evaluation, atMs: clock.monotonicMs() })
    return evaluation
  }

  /** Decides on the mail. Asks the spam engine within the remaining time. */
  async decide(envelope: Envelope, mail: EvaluatedMail): Promise<Decision> {
    const { peer, from } = envelope
    const findings: MailFindings = {
      ...toFindings(mail.verdicts, { ip: peer.address, helo: peer.helo, from: from.address }),
      ...(peer.listedBy.length > 0 && { listedBy: peer.listedBy }),
    }
    for (const [method, result] of Object.entries(findings.authentication))
      meters.verdicts.inc({ method, result })
    const forged = mail.isForInbox ? this.#dmarcRefusal(envelope, mail.verdicts) : null
    this.#noteDmarc(envelope, mail.verdicts, forged?.code === 550 ? 'reject' : 'none')
    if (!mail.isForInbox) return { findings, refusal: null }
    if (forged) return { findings, refusal: forged }
    const spam = await this.#checkSpam(envelope, mail)
    if (spam?.status !== 'judged') return { findings, refusal: null }
    return { findings: { ...findings, spam: spamRecord(spam) }, refusal: spamReply(spam) }
  }

  #dmarcRefusal(envelope: Envelope, { dmarc }: Verdicts): Reply | null {
    const { disposition, domain, policyDomain, result } = dmarc
    if (this.#deps.dmarc === 'report') return null
    // Stops a forger who causes so many slow look-ups that no time is left for the forged domain's policy.
    if (result === 'temperror') return this.#wasHeldUp(envelope) ? heldUp : null
    if (disposition !== 'reject') return null
    const wish = `Unauthenticated mail from ${domain} is rejected by the DMARC policy of ${policyDomain}`
    // QUIRK: RFC 9989 7.4 wants more evidence than the domain's policy before a mail is refused, and says that few
    // receivers have any. Our further evidence is the sealers that the operator trusts.
    // RFC 7372 3.4: X.7.26, multiple authentication checks failed.
    return reply(550, '5.7.26', wish)
  }

  #wasHeldUp(envelope: Envelope): boolean {
    return this.#deps.dns.wasHeldUp(askerOf(envelope), this.#begun.get(envelope)!.atMs)
  }

  #noteDmarc({ peer, from }: Envelope, { spf, dkim, dmarc }: Verdicts, applied: 'reject' | 'none'): void {
    const signatures = dkim.flatMap(({ domain, selector, result }) =>
      domain === null || selector === null ? [] : [{ domain, selector, result }],
    )
    const note = dmarcNoteOf({
      verdict: dmarc,
      sourceIp: peer.address,
      envelopeFrom: from.domain,
      spf,
      dkim: signatures,
      applied,
    })
    if (note) this.#deps.noteDmarc(note)
  }

  async #checkSpam({ peer, from, to }: Envelope, { raw, verdicts, endedMs }: EvaluatedMail) {
    const { rspamd, blobs, clock } = this.#deps
    const withinMs = deadlineMs - (clock.monotonicMs() - endedMs)
    if (rspamd === null || withinMs <= 0) return null
    const bytes = raw.bytes ?? { open: () => blobs.read(raw.blob!), sizeBytes: raw.sizeBytes }
    const asked = {
      remoteIp: peer.address,
      helo: peer.helo,
      from: from.address,
      queueId: raw.id,
      recipients: to.map(({ address }) => address),
      hostname: verdicts.reverseDns.name,
    }
    return await rspamd.check(bytes, asked, { withinMs })
  }
}

/** The network for which DNS is queried. All its addresses use one share of look-ups. */
function askerOf({ peer }: Envelope): string {
  return wideNetworkOf(peer.address)
}
