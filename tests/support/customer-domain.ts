// A customer's domain, registered over the API, with the records for its proved uses in the test's DNS.
import type { Api } from './api.ts'
import type { DnsServer, ZoneRecords } from './dns-server.ts'

interface DomainRecord {
  purpose: string
  type: 'TXT' | 'MX'
  name: string
  value: string
  priority: number | null
  required: boolean
  status: string
  observed: string[]
  checkedAt: string | null
}

type Capability = { status: 'pending' | 'verified' | 'failed'; reasons: string[]; checkedAt: string | null }

export interface Domain {
  id: string
  domain: string
  status: string
  records: DomainRecord[]
  capabilities: { outbound: Capability; inbound: Capability }
  createdAt: string
  updatedAt: string
  verifiedAt: string | null
}

/** The records of each use. Either use includes ownership. */
const purposes = {
  ownership: ['ownership'],
  outbound: ['ownership', 'dkim', 'return_path', 'spf', 'dmarc'],
  inbound: ['ownership', 'mx'],
}

export type Use = keyof typeof purposes

export async function registerDomain(api: Api, domain: string): Promise<Domain> {
  return await api.want('/v1/domains', { method: 'POST', body: { domain }, status: 201 })
}

/** Publishes the records of these uses in DNS and removes the others, so that DNS proves exactly these uses. */
export function publish(dns: DnsServer, { records }: Domain, uses: Use[]): void {
  const wanted = new Set(uses.flatMap((use) => purposes[use]))
  const zone = new Map<string, ZoneRecords>(records.map(({ name }) => [name, {}]))
  for (const { purpose, type, name, value, priority } of records) {
    if (!wanted.has(purpose)) continue
    const there = zone.get(name)!
    if (type === 'TXT') there.TXT = [...(there.TXT ?? []), value]
    else there.MX = [...(there.MX ?? []), [priority ?? 10, value]]
  }
  for (const [name, there] of zone) dns.set(name, there)
}

export async function verify(api: Api, { id }: { id: string }): Promise<Domain> {
  const { domain } = await api.want<{ domain: Domain }>(`/v1/domains/${id}/verify`, { method: 'POST' })
  return domain
}

/** Registers the domain, publishes the records of these uses and has the service check them. */
export async function proveDomain(api: Api, dns: DnsServer, name: string, uses: Use[]): Promise<Domain> {
  const domain = await registerDomain(api, name)
  publish(dns, domain, uses)
  return await verify(api, domain)
}
