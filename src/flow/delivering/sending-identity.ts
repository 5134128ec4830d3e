// What mail from a domain is signed with and where its reports come back, decided at the moment of sending.
import type { KeyObject } from 'node:crypto'
import { Batch } from '../../base/batch.ts'
import type { Clock } from '../../base/clock.ts'
import type { DomainId, OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { returnPathHostOf } from '../../dns/domain-records.ts'
import type { DkimKey } from '../../mailauth/dkim-sign.ts'
import type { Db } from '../../postgres/db.ts'
import { type DomainKeyRow, listDomainKeys } from '../../store/dkim-keys.ts'
import { findClaim } from '../../store/domains.ts'
import { openDkimKey } from '../dkim-secret.ts'
import type { ProvedDomains } from '../proved-domains.ts'

export interface SendingIdentity {
  keys: readonly DkimKey[]
  returnPathHost: string
}

interface Deps {
  db: Db
  clock: Clock
  log: Log
  secretBox: SecretBox
  domains: ProvedDomains
  /** The deployment's own domain. */
  managed: { domain: string; keys: DkimKey[] }
}

const knownMs = 1_000
const maxKnown = 10_000

/** The identities of a node; a key is parsed once, and which ones sign is known for a second. */
export class SendingIdentities {
  readonly #deps: Deps
  readonly #managed: SendingIdentity
  readonly #lookups: Batch<DomainId, DomainKeyRow[]>
  readonly #known = new Map<DomainId, { keys: DkimKey[]; untilMs: number }>()
  readonly #parsed = new Map<string, KeyObject | null>()

  constructor(deps: Deps) {
    this.#deps = deps
    this.#managed = { keys: deps.managed.keys, returnPathHost: deps.managed.domain }
    this.#lookups = new Batch({ name: 'read keys', flush: (ids) => this.#readKeys(ids) })
  }

  /** `unproved`: the organization may not send from the domain now. `gone`: it has no such domain any more. */
  async of(
    organizationId: OrganizationId,
    domain: string,
    origin: 'inbox' | 'domain',
  ): Promise<SendingIdentity | 'unproved' | 'gone'> {
    const { managed, domains, db } = this.#deps
    if (domain === managed.domain) return this.#managed
    const proved = await domains.findSending(organizationId, domain)
    if (!proved) {
      // A domain with inboxes cannot be deleted. Without a claim this one is a managed domain that the deployment had
      // before: nothing comes back to it, and our keys do not speak for it.
      const isKept = origin === 'inbox' || (await findClaim(db, organizationId, domain))
      return isKept ? 'unproved' : 'gone'
    }
    const keys = await this.#keysOf(proved.id)
    // Unsigned mail would pass for the domain's own and fail its DMARC.
    return keys.length === 0 ? 'unproved' : { keys, returnPathHost: returnPathHostOf(domain) }
  }

  async #keysOf(id: DomainId): Promise<DkimKey[]> {
    const { clock } = this.#deps
    const known = this.#known.get(id)
    if (known && clock.monotonicMs() < known.untilMs) return known.keys
    const untilMs = clock.monotonicMs() + knownMs
    // Opened here, not in the batch: a key that cannot be opened is its own domain's trouble alone.
    const keys = (await this.#lookups.add(id)).flatMap((row) => this.#parse(row) ?? [])
    if (this.#known.size >= maxKnown) this.#known.clear()
    this.#known.set(id, { keys, untilMs })
    return keys
  }

  async #readKeys(ids: DomainId[]): Promise<DomainKeyRow[][]> {
    const rows = await listDomainKeys(this.#deps.db, [...new Set(ids)])
    const active = Map.groupBy(
      rows.filter(({ state }) => state === 'active'),
      ({ domainId }) => domainId,
    )
    return ids.map((id) => active.get(id) ?? [])
  }

  #parse(row: DomainKeyRow): DkimKey | null {
    const { domain, selector, algorithm, domainId } = row
    const name = `${domainId} ${selector}`
    const known = this.#parsed.get(name)
    const privateKey = known === undefined ? this.#open(row) : known
    if (this.#parsed.size >= maxKnown) this.#parsed.clear()
    this.#parsed.set(name, privateKey)
    return privateKey && { domain, selector, algorithm, privateKey }
  }

  /** Null where it was sealed with another key, or altered: told once, and the domain's mail waits for a key that opens. */
  #open(row: DomainKeyRow): KeyObject | null {
    const { secretBox, log } = this.#deps
    try {
      return openDkimKey(secretBox, row)
    } catch (error) {
      log.error({ err: error, domain: row.domain, selector: row.selector }, 'a DKIM key cannot be opened')
      return null
    }
  }
}
