// The queries for the organization's domains, and the state of each domain's uses.

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'

export type Domain = Schemas['Domain']
export type DomainRecord = Schemas['DomainRecord']

export const domainsQuery = infiniteQueryOptions({
  queryKey: ['domains'],
  queryFn: ({ pageParam }) =>
    read(api.GET('/v1/domains', { params: { query: { limit: 50, cursor: pageParam } } })),
  ...paged,
})

export const domainQuery = (domainId: string) =>
  queryOptions({
    queryKey: ['domain', domainId],
    queryFn: () => read(api.GET('/v1/domains/{domainId}', { params: { path: { domainId } } })),
  })

export const trafficQuery = (domainId: string) =>
  queryOptions({
    queryKey: ['domain', domainId, 'traffic'],
    queryFn: () => read(api.GET('/v1/domains/{domainId}/traffic', { params: { path: { domainId } } })),
    refetchInterval: 30_000,
  })

export type RecordGroup = 'ownership' | 'outbound' | 'inbound' | 'recommended' | 'retired'

export function groupOf({ purpose, required }: DomainRecord): RecordGroup {
  if (purpose === 'dkim' && !required) return 'retired'
  if (purpose === 'ownership') return 'ownership'
  if (purpose === 'mx') return 'inbound'
  return required ? 'outbound' : 'recommended'
}

/** Counts the required records, and how many of them DNS shows. */
export function countFound({ records }: Pick<Domain, 'records'>): { found: number; all: number } {
  const required = records.filter((record) => record.required)
  return { found: required.filter(({ status }) => status === 'valid').length, all: required.length }
}
