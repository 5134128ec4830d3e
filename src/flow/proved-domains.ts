// The proved domains of customers, for the MX, acceptance and delivery: read in batches, cached for up to a second.
import type { Clock } from '../base/clock.ts'
import type { OrganizationId } from '../base/ids.ts'
import { KnownFor, recheckRefusal } from '../base/known-for.ts'
import type { Db } from '../postgres/db.ts'
import { findProvedUses, type ProvedDomain } from '../store/domains/domain-use.ts'

/** All nodes know a newly proved domain after this time. */
const unprovedMs = 100

/** Caches whether names are proved or not. */
export class ProvedDomains {
  readonly #clock: Clock
  readonly #domains: KnownFor<string, ProvedDomain>

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#clock = clock
    this.#domains = new KnownFor({
      name: 'find domains',
      clock,
      ms: 1_000,
      missingMs: unprovedMs,
      max: 50_000,
      load: async (names) =>
        new Map((await findProvedUses(db, names)).map((domain) => [domain.name, domain])),
    })
  }

  /**
   * The domain of exactly this name, if its ownership is proved. `name` is in A-labels and lower case. A permanent refusal
   * needs a look-up no older than `sinceMs`.
   */
  find(name: string, sinceMs?: number): Promise<ProvedDomain | null> {
    return this.#domains.find(name, sinceMs)
  }

  /** The domain if the organization may send from it. Reads the database before it returns null. */
  async findSending(organizationId: OrganizationId, name: string): Promise<ProvedDomain | null> {
    const find = async (sinceMs: number) => {
      const found = await this.find(name, sinceMs)
      return found?.organizationId === organizationId && found.canSend ? found : null
    }
    return await recheckRefusal(this.#clock, find, (found) => found === null)
  }
}
