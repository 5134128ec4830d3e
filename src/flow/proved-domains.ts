// Which customers' domains are proved, as the MX, acceptance and delivery ask: looked up in batches, known for a second.
import { Batch } from '../base/batch.ts'
import type { Clock } from '../base/clock.ts'
import type { OrganizationId } from '../base/ids.ts'
import { upon } from '../base/upon.ts'
import type { Db } from '../postgres/db.ts'
import { findProvedUses, type ProvedDomain } from '../store/domain-use.ts'

const knownMs = 1_000
const maxKnown = 50_000

/** What a node knows of names, whether they are proved or not. */
export class ProvedDomains {
  readonly #clock: Clock
  readonly #lookups: Batch<string, ProvedDomain | null>
  readonly #known = new Map<string, { found: ProvedDomain | null; untilMs: number }>()

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#clock = clock
    this.#lookups = new Batch({ name: 'find domains', flush: (names) => lookUp(db, names) })
  }

  /** The domain of that very name if its ownership is proved; `name` in A-labels and lower case. */
  find(name: string): ProvedDomain | null | Promise<ProvedDomain | null> {
    const known = this.#known.get(name)
    if (known && this.#clock.monotonicMs() < known.untilMs) return known.found
    return this.#lookUp(name)
  }

  /** The domain if the organization may send from it. */
  findSending(
    organizationId: OrganizationId,
    name: string,
  ): ProvedDomain | null | Promise<ProvedDomain | null> {
    return upon(this.find(name), (found) => {
      return found?.organizationId === organizationId && found.outbound ? found : null
    })
  }

  async #lookUp(name: string): Promise<ProvedDomain | null> {
    // What is told may be as old as the question, and no older.
    const untilMs = this.#clock.monotonicMs() + knownMs
    const found = await this.#lookups.add(name)
    if (this.#known.size >= maxKnown) this.#known.clear()
    this.#known.set(name, { found, untilMs })
    return found
  }
}

async function lookUp(db: Db, names: string[]): Promise<(ProvedDomain | null)[]> {
  const found = await findProvedUses(db, [...new Set(names)])
  const byName = new Map(found.map((domain) => [domain.name, domain]))
  return names.map((name) => byName.get(name) ?? null)
}
