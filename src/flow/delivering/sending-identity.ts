// The DKIM keys and the return path host for mail from a domain, decided at the moment of sending.
import type { KeyObject } from 'node:crypto'
import { BoundedMap } from '../../base/bounded-map.ts'
import type { Clock } from '../../base/clock.ts'
import type { DomainId, OrganizationId } from '../../base/ids.ts'
import { KnownFor } from '../../base/known-for.ts'
import type { Log } from '../../base/log.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { returnPathHostOf } from '../../dns/domain-records.ts'
import type { DkimKey } from '../../mailauth/dkim-sign.ts'
import type { Db } from '../../postgres/db.ts'
import { type KeyInLifeRow, listDkimKeys, listDomainKeys } from '../../store/domains/dkim-keys.ts'
import { findClaim } from '../../store/domains/domains.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import { openDkimKey } from '../secrets/dkim-secret.ts'

export interface SendingIdentity {
  keys: readonly DkimKey[]
  returnPathHost: string
  /** Whether mail of programs has a one-click link to unsubscribe. */
  hasOneClick: boolean
}

interface Deps {
  db: Db
  clock: Clock
  log: Log
  secretBox: SecretBox
  domains: ProvedDomains
  /** The deployment's own domain. */
  managedDomain: string
}

const maxKnown = 10_000

/** Finds the identity for mail from a domain. Parses each key once, and caches the list of active keys for a second. */
export class SendingIdentities {
  readonly #deps: Deps
  readonly #keys: KnownFor<DomainId, DkimKey[]>
  readonly #managedKeys: KnownFor<string, DkimKey[]>
  readonly #parsed = new BoundedMap<string, KeyObject | null>(maxKnown)

  constructor(deps: Deps) {
    this.#deps = deps
    const { clock } = deps
    this.#keys = new KnownFor({
      name: 'read keys',
      clock,
      ms: 1_000,
      max: maxKnown,
      load: (ids) => this.#readKeys(ids),
    })
    this.#managedKeys = new KnownFor({
      name: 'read managed keys',
      clock,
      ms: 1_000,
      max: 1,
      load: ([domain]) => this.#readManaged(domain!),
    })
  }

  /** `unproved`: the organization may not send from the domain now. `gone`: the organization has no such domain any more. */
  async of(
    organizationId: OrganizationId,
    domain: string,
    origin: 'inbox' | 'domain',
  ): Promise<SendingIdentity | 'unproved' | 'gone'> {
    const { managedDomain, domains, db } = this.#deps
    if (domain === managedDomain) {
      const keys = await this.#managedKeys.find(domain)
      return keys ? { keys, returnPathHost: domain, hasOneClick: false } : 'unproved'
    }
    const proved = await domains.findSending(organizationId, domain)
    if (!proved) {
      // A domain with inboxes cannot be deleted. If the domain of an inbox has no claim, it is a former managed domain of the
      // deployment. Replies to that domain do not reach us, and our keys cannot sign for it, so the mail waits.
      const isKept = origin === 'inbox' || (await findClaim(db, organizationId, domain))
      return isKept ? 'unproved' : 'gone'
    }
    const keys = await this.#keys.find(proved.id)
    // Without a key the mail waits, because unsigned mail in the domain's name could fail its DMARC policy.
    const { hasOneClick } = proved
    return !keys ? 'unproved' : { keys, returnPathHost: returnPathHostOf(domain), hasOneClick }
  }

  /** The active keys that can be opened. A key that cannot be opened affects its own domain only. */
  async #readKeys(ids: DomainId[]): Promise<Map<DomainId, DkimKey[]>> {
    const rows = await listDomainKeys(this.#deps.db, ids)
    const keys = rows.flatMap((row) =>
      this.#parseActive(row, row.domainId).map((key) => ({ domainId: row.domainId, key })),
    )
    const byDomain = Map.groupBy(keys, ({ domainId }) => domainId)
    return new Map([...byDomain].map(([id, found]) => [id, found.map(({ key }) => key)]))
  }

  async #readManaged(domain: string): Promise<Map<string, DkimKey[]>> {
    const rows = await listDkimKeys(this.#deps.db, domain)
    const keys = rows.flatMap((row) => this.#parseActive(row, 'managed'))
    return new Map(keys.length > 0 ? [[domain, keys]] : [])
  }

  /** The key, if it is active and can be opened. */
  #parseActive(row: KeyInLifeRow, owner: string): DkimKey[] {
    const { domain, selector, algorithm, state } = row
    if (state !== 'active') return []
    const name = `${owner} ${selector}`
    const known = this.#parsed.get(name)
    const privateKey = known === undefined ? this.#open(row) : known
    if (known === undefined) this.#parsed.set(name, privateKey)
    return privateKey ? [{ domain, selector, algorithm, privateKey }] : []
  }

  /**
   * Opens the private key. Logs once and returns null if the key was sealed with another secret key, or altered. The domain's
   * mail then waits until one of its keys can be opened.
   */
  #open(row: KeyInLifeRow): KeyObject | null {
    const { secretBox, log } = this.#deps
    try {
      return openDkimKey(secretBox, row)
    } catch (error) {
      log.error({ err: error, domain: row.domain, selector: row.selector }, 'DKIM key could not be opened')
      return null
    }
  }
}
