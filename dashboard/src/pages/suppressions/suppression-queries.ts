// The queries of suppressions and complaints, by page, or by one whole address.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'

export type Suppression = Schemas['NotedSuppression']
export type Complaint = Schemas['Complaint']

const pageSize = 100

/** Without a cursor, or with an empty one, it reads the first page. */
export function readSuppressions(cursor?: string) {
  const query = { limit: pageSize, cursor: cursor || undefined }
  return read(api.GET('/v1/suppressions/noted', { params: { query } }))
}

export function readComplaints(cursor?: string) {
  const query = { limit: pageSize, cursor: cursor || undefined }
  return read(api.GET('/v1/complaints', { params: { query } }))
}

export const suppressionsQuery = infiniteQueryOptions({
  queryKey: ['suppressions'],
  queryFn: ({ pageParam }) => readSuppressions(pageParam),
  ...paged,
})

export const complaintsQuery = infiniteQueryOptions({
  queryKey: ['complaints'],
  queryFn: ({ pageParam }) => readComplaints(pageParam),
  ...paged,
})

export function isWholeAddress(text: string): boolean {
  return /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text)
}

/** Finds the suppression of a whole address, or null. */
export const foundQuery = (email: string) =>
  queryOptions({
    queryKey: ['suppression', email],
    enabled: isWholeAddress(email),
    queryFn: async () =>
      (await read(api.GET('/v1/suppressions/noted', { params: { query: { email } } }))).suppressions[0] ??
      null,
  })
