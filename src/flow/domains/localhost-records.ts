// Answers DNS questions for names below localhost: the keys of a managed domain there, and nothing else.
import type { Asking, DnsAnswer, DnsRecords, DnsType, Resolver } from '../../dns/resolver.ts'
import type { Db } from '../../postgres/db.ts'
import { listManagedKeys } from './managed-keys.ts'

/** Like the short TTLs of names that are being changed. */
const ttlSeconds = 60

/** Answers localhost names and passes on all others. So mail between two inboxes on a laptop has verifiable signatures. */
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
      // A resolver never rejects. A lost database counts as a server that does not answer.
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
