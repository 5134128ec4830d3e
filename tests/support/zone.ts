// A Lookup over zones that a test writes: records by name and type, aliases, and names for which DNS does not answer.
import type { DnsAnswer, DnsRecords, DnsType } from '../../src/dns/resolver.ts'
import type { Lookup } from '../../src/mailauth/lookup.ts'

/** The records at a name. A `silent` name does not answer for a type without a record. */
export interface ZoneName {
  records: { [Type in DnsType]?: DnsRecords[Type][] }
  silent?: boolean
}

/** By name, in lower case without a trailing dot. */
export type Zone = ReadonlyMap<string, ZoneName>

const maxAliases = 8

export function lookupIn(zone: Zone): Lookup {
  return async (type, name) => answerFrom(zone, type, name)
}

function answerFrom<Type extends DnsType>(
  zone: Zone,
  type: Type,
  asked: string,
): DnsAnswer<DnsRecords[Type]> {
  let name = asked.toLowerCase()
  for (let aliases = 0; aliases <= maxAliases; aliases++) {
    const found = zone.get(name)
    if (!found) return { status: 'nxdomain' }
    const records = found.records[type] as DnsRecords[Type][] | undefined
    if (records?.length) return { status: 'ok', records }
    const [alias] = found.records.CNAME ?? []
    if (found.silent) return { status: 'temporary', reason: 'DNS did not answer in time' }
    if (alias === undefined) return { status: 'nodata' }
    name = alias.toLowerCase()
  }
  return { status: 'temporary', reason: 'the aliases run in a circle' }
}

type Written = { [Type in Exclude<DnsType, 'TLSA'>]?: string[] }

/** A zone of `{ name: { TXT: [...], A: [...] } }`: addresses as written, MX as hosts in order. */
export function zoneOf(names: Record<string, Written | 'silent'>): Zone {
  return new Map(
    Object.entries(names).map(([name, given]) => [
      name.toLowerCase(),
      given === 'silent' ? { records: {}, silent: true } : { records: recordsOf(given) },
    ]),
  )
}

export function recordsOf({ A, AAAA, MX, ...others }: Written): ZoneName['records'] {
  const addresses = (written: string[] = []) => written.map((address) => ({ address, ttlSeconds: 60 }))
  return {
    ...others,
    ...(A && { A: addresses(A) }),
    ...(AAAA && { AAAA: addresses(AAAA) }),
    ...(MX && { MX: MX.map((exchange, preference) => ({ exchange, preference })) }),
  }
}
