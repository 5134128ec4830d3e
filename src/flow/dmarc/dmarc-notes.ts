// Counts evaluated mail for aggregate reports: in memory, then in the database every few seconds, so no sender waits.
import type { Clock } from '../../base/clock.ts'
import { wideNetworkOf } from '../../base/ip-address.ts'
import type { DmarcNote } from '../../mailauth/dmarc/dmarc-note.ts'
import { registeredDomain } from '../../mailauth/dmarc/dns-name.ts'
import type { Db } from '../../postgres/db.ts'
import { type CountedKind, noteDmarc } from '../../store/domains/dmarc-reports.ts'
import { reportDueAt } from '../daily-reports.ts'

/** The maximum of kinds in memory between two flushes. */
const maxHeld = 5_000
/**
 * Limits per day. Strangers choose the domains and kinds of mail, so each network and registered domain has a share. Only
 * these limits bound the volume, as no organization's limits count reports.
 */
const bounds = {
  maxReports: 5_000,
  maxReportsOfNetwork: 500,
  maxReportsOfDomain: 20,
  maxKinds: 100_000,
  maxKindsOfNetwork: 10_000,
  maxKindsOfReport: 1_000,
}

type Counted = CountedKind<DmarcNote['policy'], DmarcNote['mail']>

interface NotingDeps {
  db: Db
  clock: Clock
  isTrusted(address: string): boolean
}

/** The mail that this node has evaluated since the last flush. A crash loses only a few seconds of counts. */
export class DmarcNotes {
  readonly #db: Db
  readonly #clock: Clock
  readonly #isTrusted: (address: string) => boolean
  #kinds = new Map<string, Counted>()

  /** Mail of trusted peers comes from many networks, and has no share. */
  constructor({ db, clock, isTrusted }: NotingDeps) {
    this.#db = db
    this.#clock = clock
    this.#isTrusted = isTrusted
  }

  /** Counts the mail, unless too many kinds have arrived since the last flush. */
  note({ policyDomain, policy, mail }: DmarcNote): void {
    const day = this.#clock.now().toISOString().slice(0, 10)
    const key = JSON.stringify([day, policyDomain, mail])
    const known = this.#kinds.get(key)
    if (known !== undefined) {
      known.amount++
      known.policy = policy
    } else if (this.#kinds.size < maxHeld) {
      const network = this.#isTrusted(mail.sourceIp) ? null : wideNetworkOf(mail.sourceIp)
      const shares = { network, registeredDomain: registeredDomain(policyDomain) }
      this.#kinds.set(key, { day, policyDomain, ...shares, policy, mail, amount: 1, dueAt: reportDueAt(day) })
    }
  }

  /** Writes the counts. Always false, as nothing more is due now. If the write fails, the counts are lost. */
  async flush(): Promise<false> {
    const kinds = [...this.#kinds.values()]
    this.#kinds = new Map()
    await noteDmarc(this.#db.writer, kinds, bounds)
    return false
  }
}
