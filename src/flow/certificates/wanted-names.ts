// The names for the certificate: the mail host, the API's host, and hosts of MTA-STS policies that resolve to us.
import type { Clock } from '../../base/clock.ts'
import { KnownFor } from '../../base/known-for.ts'
import { fitsDns } from '../../dns/domain-records.ts'
import { policyHostOf } from '../../dns/mta-sts.ts'
import type { Resolver } from '../../dns/resolver.ts'
import type { Db } from '../../postgres/db.ts'
import { listReceivingDomains } from '../../store/domains/domain-use.ts'
import type { Wanted } from './decide-order.ts'

export interface WantedNamesDeps {
  db: Db
  clock: Clock
  resolver: Pick<Resolver, 'resolve'>
  /** The names that are always wanted, the mail host first. */
  ownHosts: readonly string[]
  managedDomain: string
}

/** Let's Encrypt allows 100. */
const maxNames = 90
const maxDomains = 1_000
const lookupMs = 10 * 60_000
const lookupsAtOnce = 16

export class WantedNames {
  readonly #deps: WantedNamesDeps
  /** The addresses of a host. Hosts without a DNS answer are missing. */
  readonly #addresses: KnownFor<string, ReadonlySet<string>>

  constructor(deps: WantedNamesDeps) {
    this.#deps = deps
    this.#addresses = new KnownFor({
      name: 'find policy hosts',
      clock: deps.clock,
      ms: lookupMs,
      missingMs: 60_000,
      max: maxDomains + 10,
      load: (hosts) => this.#findAddresses(hosts),
    })
  }

  /** At most 90 names. A host without a DNS answer now is wanted if `present` contains it. */
  async list(present: readonly string[]): Promise<Wanted> {
    const { db, ownHosts, managedDomain } = this.#deps
    const domains = [managedDomain, ...(await listReceivingDomains(db, maxDomains))]
    const hosts = [...new Set(domains.map(policyHostOf))].filter(fitsDns)
    const ours = new Set<string>()
    for (const host of ownHosts)
      for (const address of (await this.#addresses.find(host)) ?? []) ours.add(address)
    const found = await Promise.all(hosts.map((host) => this.#addresses.find(host)))
    const leading = hosts.filter((host, index) => {
      const addresses = found[index]
      return addresses ? [...addresses].some((address) => ours.has(address)) : present.includes(host)
    })
    const others = leading.filter((host) => !ownHosts.includes(host))
    return { own: ownHosts, others: others.slice(0, maxNames - ownHosts.length) }
  }

  async #findAddresses(hosts: string[]): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
    const found = new Map<string, ReadonlySet<string>>()
    const waiting = [...hosts]
    const work = async () => {
      for (let host = waiting.pop(); host !== undefined; host = waiting.pop()) {
        const addresses = await this.#resolve(host)
        if (addresses) found.set(host, addresses)
      }
    }
    await Promise.all(Array.from({ length: lookupsAtOnce }, work))
    return found
  }

  /** Null if DNS gave no answer. */
  async #resolve(host: string): Promise<ReadonlySet<string> | null> {
    const { resolver } = this.#deps
    const answers = [await resolver.resolve('A', host), await resolver.resolve('AAAA', host)]
    if (answers.some(({ status }) => status === 'temporary')) return null
    return new Set(
      answers
        .flatMap((answer) => (answer.status === 'ok' ? answer.records : []))
        .map(({ address }) => address),
    )
  }
}
