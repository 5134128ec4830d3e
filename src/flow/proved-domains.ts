// Which customers' domains are proved, as the MX, acceptance and delivery ask: looked up in batches, known for a second.
import type { Clock } from '../base/clock.ts'
import type { OrganizationId } from '../base/ids.ts'
import { KnownFor } from '../base/known-for.ts'
import type { Db } from '../postgres/db.ts'
import { findProvedUses, type ProvedDomain } from '../store/domain-use.ts'

/** What a node knows of names, whether they are proved or not. */
export class ProvedDomains {
  readonly #domains: KnownFor<string, ProvedDomain>

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#domains = new KnownFor({
      ...{ name: 'find domains', clock, ms: 1_000, max: 50_000 },
      load: async (names) =>
        new Map((await findProvedUses(db, names)).map((domain) => [domain.name, domain])),
    })
  }

  /** The domain of that very name if its ownership is proved; `name` in A-labels and lower case. */
  find(name: string): Promise<ProvedDomain | null> {
    return this.#domains.find(name)
  }

  /** The domain if the organization may send from it. */
  async findSending(organizationId: OrganizationId, name: string): Promise<ProvedDomain | null> {
    const found = await this.find(name)
    return found?.organizationId === organizationId && found.outbound ? found : null
  }
}
