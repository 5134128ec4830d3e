// Finds the TLSA records of a mail server, which say how its certificate is recognized (RFC 7672 2.2.3).

import type { Temporary } from './read-answer.ts'
import type { TlsaRecord } from './read-record.ts'
import type { Asking, Resolver } from './resolver.ts'

export type Tlsa = { status: 'found'; base: string; records: TlsaRecord[] } | { status: 'none' } | Temporary

/** The first records that DNSSEC proves, and the name that has them. Never rejects. */
export async function findTlsa(
  resolver: Pick<Resolver, 'resolve'>,
  bases: readonly string[],
  port: number,
  asking: Asking,
): Promise<Tlsa> {
  for (const base of bases) {
    // RFC 6698 3: the name is made of the port, the protocol and the host.
    const answer = await resolver.resolve('TLSA', `_${port}._tcp.${base}`, asking)
    // RFC 7672 2.1.2: without an answer the server may want DANE, so mail must not go to it without.
    if (answer.status === 'temporary') return answer
    // RFC 7672 2.2: records that DNSSEC does not prove count as none.
    if (answer.status === 'ok' && answer.isAuthenticated)
      return { status: 'found', base, records: answer.records }
  }
  return { status: 'none' }
}
