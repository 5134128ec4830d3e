// What DNS would say of names below localhost, which it is never asked: the keys of a managed domain there, and nothing else.
import type { Asking, DnsAnswer, DnsRecords, DnsType, Resolver } from '../../dns/resolver.ts'
import type { Db } from '../../postgres/db.ts'
import { listManagedKeys } from './managed-keys.ts'

/** As with the short TTLs of names that people are at work on. */
const ttlSeconds = 60

/** The same resolver for all names but those: on a laptop, mail between two inboxes has signatures that can be verified. */
export function knowingLocalhost(
  resolver: Pick<Resolver, 'resolve'>,
  { db, managedDomain }: { db: Db; managedDomain: string },
): Pick<Resolver, 'resolve'> {
  return {
    resolve: async <Type extends DnsType>(
      type: Type,
      name: string,
      asking?: Asking,
    ): Promise<DnsAnswer<DnsRecords[Type]>> => {
      // RFC 6761 6.3: resolvers answer for localhost names themselves.
      if (!/(^|\.)localhost\.?$/i.test(name)) return await resolver.resolve(type, name, asking)
      const isKey = type === 'TXT' && name.toLowerCase().endsWith(`._domainkey.${managedDomain}`)
      // What is asked of DNS is never rejected: a database out of reach is a server that does not answer.
      const published = isKey ? await listManagedKeys(db, managedDomain).catch(() => null) : []
      if (published === null) return { status: 'temporary', reason: 'the keys cannot be read now' }
      const records = published
        .filter((record) => record.name === name.toLowerCase())
        .map(({ value }) => value)
      return records.length > 0
        ? { status: 'ok', records: records as DnsRecords[Type][], ttlSeconds }
        : { status: 'nxdomain' }
    },
  }
}
