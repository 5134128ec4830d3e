// A look-up over a table of DMARC records and names, for tests of the queries and the use of their answers.
import type { DnsAnswer } from '../../src/dns/resolver.ts'
import type { Lookup } from '../../src/mailauth/lookup.ts'

/** Texts of `_dmarc` below each name; `temporary` if DNS does not answer. Names of `existing` have an address. */
export interface Zone {
  dmarc: Record<string, string | string[]>
  existing?: readonly string[]
  /** TXT answers for other names. */
  txt?: Record<string, string[]>
}

export const temporary = 'temporary'

export function zoneLookup({ dmarc, existing = [], txt = {} }: Zone): Lookup {
  const failing: DnsAnswer<never> = { status: 'temporary', reason: 'DNS answered SERVFAIL' }
  const texts = new Map(Object.entries(txt))
  for (const [name, published] of Object.entries(dmarc)) texts.set(`_dmarc.${name}`, [published].flat())
  const answer = (type: string, name: string): DnsAnswer<unknown> => {
    const found = texts.get(name)
    if (found?.includes(temporary)) return failing
    if (type === 'TXT' && found !== undefined) return { status: 'ok', records: found }
    if (!existing.includes(name)) return { status: 'nxdomain' }
    return type === 'A'
      ? { status: 'ok', records: [{ address: '192.0.2.1', ttlSeconds: 60 }] }
      : { status: 'nodata' }
  }
  return (async (type: string, name: string) => answer(type, name)) as Lookup
}
