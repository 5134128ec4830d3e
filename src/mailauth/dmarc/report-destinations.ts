// Finds the addresses that a domain names for its aggregate reports, and whose hosts agree to receive them.
import { parseEmail } from '../../mail/address.ts'
import type { Lookup } from '../lookup.ts'
import { fitsDns } from './dns-name.ts'
import { isDmarcRecord, parseDmarcRecord } from './record.ts'
import { organizationalDomain, type RecordLookup, recordLookup, walkTree } from './tree-walk.ts'

export interface Destination {
  email: string
  /** The domain of the address. */
  host: string
}

export interface Destinations {
  /** Each once, at most 4. */
  emails: string[]
  /** Whether DNS did not answer for an address. A later call may find more. */
  isIncomplete: boolean
}

const maxDestinations = 4

/**
 * The addresses among the URIs of an `rua` tag, each once and in order, at most 4. Ignores other schemes, URIs with
 * several addresses, addresses that cannot receive mail, and sizes after an exclamation mark.
 */
export function readDestinations(rua: readonly string[]): Destination[] {
  const found = new Map<string, Destination>()
  for (const uri of rua) {
    const destination = readMailto(uri)
    if (destination !== null && found.size < maxDestinations) found.set(destination.email, destination)
  }
  return [...found.values()]
}

function readMailto(uri: string): Destination | null {
  // RFC 9989 4.8: the size is obsolete, and ignored.
  const [, encoded = ''] = /^mailto:([^?!]*)/i.exec(uri) ?? []
  const address = parseEmail(decodePercents(encoded))
  return address && { email: address.email, host: address.domain }
}

function decodePercents(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return '' // A % that encodes no character: this is no address.
  }
}

/**
 * Addresses of the `rua` tag, found at `policyDomain`, that may be sent reports. An address at another organization
 * counts only if that organization agrees in DNS. It may name other addresses of its host instead. Never rejects.
 */
export async function findDestinations(
  lookup: Lookup,
  policyDomain: string,
  rua: readonly string[],
): Promise<Destinations> {
  const ask = recordLookup(lookup)
  const emails = new Set<string>()
  let isIncomplete = false
  for (const destination of readDestinations(rua)) {
    const agreed = await agreedBy(lookup, ask, policyDomain, destination)
    if (agreed === 'unknown') isIncomplete = true
    else for (const email of agreed) emails.add(email)
  }
  return { emails: [...emails].slice(0, maxDestinations), isIncomplete }
}

async function agreedBy(
  lookup: Lookup,
  ask: RecordLookup,
  policyDomain: string,
  { email, host }: Destination,
): Promise<string[] | 'unknown'> {
  if (host === policyDomain) return [email]
  const organizations = await Promise.all([organizationOf(ask, policyDomain), organizationOf(ask, host)])
  if (organizations.includes(null)) return 'unknown'
  // RFC 9990 4: within one organization no agreement is needed.
  if (organizations[0] === organizations[1]) return [email]
  // RFC 9990 4: without this record, anybody could have a stranger flooded with reports.
  const name = `${policyDomain}._report._dmarc.${host}`
  if (!fitsDns(name)) return []
  const answer = await lookup('TXT', name)
  if (answer.status === 'temporary') return 'unknown'
  const records = answer.status === 'ok' ? answer.records.filter(isDmarcRecord) : []
  return records.length === 0 ? [] : overrides(records, { email, host })
}

async function organizationOf(ask: RecordLookup, domain: string): Promise<string | null> {
  const { found, failure } = await walkTree(ask, domain)
  return failure === null ? organizationalDomain(domain, found) : null
}

/**
 * RFC 9990 4: the agreeing record may name other addresses of the same host. An address of another host undoes the
 * agreement.
 */
function overrides(records: readonly string[], { email, host }: Destination): string[] {
  const uris = records.flatMap((text) => parseDmarcRecord(text)?.rua ?? [])
  if (uris.length === 0) return [email]
  const named = readDestinations(uris)
  return named.every((one) => one.host === host) ? named.map((one) => one.email) : []
}
