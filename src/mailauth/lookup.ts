// The DNS look-up that is passed to the checks of received mail, so that they are pure and published suites need no sockets.
import type { Awaitable } from '../base/within.ts'
import type { DnsAnswer, DnsRecords, DnsType } from '../dns/resolver.ts'

/**
 * Asks for the records of one type. Never rejects: an answer that DNS cannot give now is `temporary`. Returns a cached
 * answer without a promise. Most mail needs only such answers, and waits for nothing.
 */
export type Lookup = <Type extends DnsType>(
  type: Type,
  name: string,
) => Awaitable<DnsAnswer<DnsRecords[Type]>>

/** A question that was asked, as verdicts show it: `TXT example.com`. */
export type Asked = `${DnsType} ${string}`

/** The same look-ups, and a list of the questions asked, each once, in order. */
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
