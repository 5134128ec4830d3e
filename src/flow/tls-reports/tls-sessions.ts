// Counts sessions for reports about TLS: in memory, then in the database every few seconds, so no delivery waits.
import type { Clock } from '../../base/clock.ts'
import { KnownFor } from '../../base/known-for.ts'
import { registeredDomain } from '../../mailauth/dmarc/dns-name.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { readTlsReportRecord, tlsReportName } from '../../mailauth/tls-report/record.ts'
import type { SessionResult } from '../../mailauth/tls-report/report.ts'
import type { Db } from '../../postgres/db.ts'
import { type CountedSessions, noteTls } from '../../store/domains/tls-reports.ts'
import { reportDueAt } from '../daily-reports.ts'

/** The maximum of kinds in memory between two flushes, and of characters in them. A policy may have 32 KB. */
const maxHeld = { kinds: 5_000, characters: 8 << 20 }
/** Limits per day. The owner of a domain chooses its names, servers and policies, so a registered domain has a share. */
const bounds = { maxReports: 20_000, maxReportsOfDomain: 20, maxKinds: 200_000, maxKindsOfReport: 200 }
/** How long a node remembers whether a domain asks for reports. */
const wishMs = 3_600_000
const maxWishes = 50_000

interface CountingDeps {
  db: Db
  clock: Clock
  lookup: Lookup
}

/** The sessions of this node since the last flush. A crash loses only these counts. */
export class TlsSessions {
  readonly #db: Db
  readonly #clock: Clock
  readonly #wishes: KnownFor<string, true>
  #kinds = new Map<string, CountedSessions<SessionResult>>()
  #characters = 0

  constructor({ db, clock, lookup }: CountingDeps) {
    this.#db = db
    this.#clock = clock
    this.#wishes = new KnownFor({
      name: 'tls report records',
      clock,
      ms: wishMs,
      max: maxWishes,
      load: (domains) => findWishes(lookup, domains),
    })
  }

  /** Counts the session, unless too many kinds have arrived since the last flush. */
  note(policyDomain: string, result: SessionResult): void {
    const day = this.#clock.now().toISOString().slice(0, 10)
    const key = JSON.stringify([day, policyDomain, result])
    const known = this.#kinds.get(key)
    if (known) {
      known.amount++
      return
    }
    if (this.#kinds.size >= maxHeld.kinds || this.#characters + key.length > maxHeld.characters) return
    this.#characters += key.length
    this.#kinds.set(key, {
      day,
      policyDomain,
      result,
      amount: 1,
      registeredDomain: registeredDomain(policyDomain),
      dueAt: reportDueAt(day),
    })
  }

  /** Writes the counts of domains that ask for reports. Always false, as nothing more is due now. */
  async flush(): Promise<false> {
    const kinds = [...this.#kinds.values()]
    this.#kinds = new Map()
    this.#characters = 0
    const wanted = await Promise.all(kinds.map(({ policyDomain }) => this.#wishes.find(policyDomain)))
    await noteTls(
      this.#db.writer,
      kinds.filter((_, i) => wanted[i]),
      bounds,
    )
    return false
  }
}

/** The domains that ask for reports. If DNS does not answer, the sessions count, and the sender of reports asks again. */
async function findWishes(lookup: Lookup, domains: readonly string[]): Promise<Map<string, true>> {
  const wishes = new Map<string, true>()
  await Promise.all(
    domains.map(async (domain) => {
      const answer = await lookup('TXT', tlsReportName(domain))
      const isWanted =
        answer.status === 'temporary' ||
        (answer.status === 'ok' && readTlsReportRecord(answer.records).length > 0)
      if (isWanted) wishes.set(domain, true)
    }),
  )
  return wishes
}
