// What the checks of received mail ask of DNS. It is handed in, so that they are pure and published suites run without sockets.
import type { Awaitable } from '../base/within.ts'
import type { DnsAnswer, DnsRecords, DnsType } from '../dns/resolver.ts'

/**
 * Asks for the records of one type. Never rejects: what is not known now is `temporary`. An answer that is known already
 * is returned as it is: most mail asks for nothing else, and waits for nothing.
 */
export type Lookup = <Type extends DnsType>(
  type: Type,
  name: string,
) => Awaitable<DnsAnswer<DnsRecords[Type]>>

/** A question that was asked, as verdicts show it: `TXT example.com`. */
export type Asked = `${DnsType} ${string}`

/** The same look-ups, and what was asked of them, each once, in order. */
export function recordLookups(lookup: Lookup): { lookup: Lookup; asked(): Asked[] } {
  const asked = new Set<Asked>()
  return {
    lookup: (type, name) => {
      asked.add(`${type} ${name}`)
      return lookup(type, name)
    },
    asked: () => [...asked],
  }
}
