// What is suppressed and who complained, by pages; a whole address is looked for among all.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'

export type Suppression = Schemas['NotedSuppression']
export type Complaint = Schemas['Complaint']

const pageSize = 100

export function readSuppressions(cursor: string) {
  return read(
    api.GET('/v1/suppressions/noted', { params: { query: { limit: pageSize, ...(cursor && { cursor }) } } }),
  )
}

export function readComplaints(cursor: string) {
  return read(
    api.GET('/v1/complaints', { params: { query: { limit: pageSize, ...(cursor && { cursor }) } } }),
  )
}

export const suppressionsQuery = infiniteQueryOptions({
  queryKey: ['suppressions'],
  queryFn: ({ pageParam }) => readSuppressions(pageParam),
  initialPageParam: '',
  getNextPageParam: ({ nextCursor }) => nextCursor,
})

export const complaintsQuery = infiniteQueryOptions({
  queryKey: ['complaints'],
  queryFn: ({ pageParam }) => readComplaints(pageParam),
  initialPageParam: '',
  getNextPageParam: ({ nextCursor }) => nextCursor,
})

export function isWholeAddress(text: string): boolean {
  return /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text)
}

/** The suppression of a whole address, or null. */
export const foundQuery = (email: string) =>
  queryOptions({
    queryKey: ['suppression', email],
    enabled: isWholeAddress(email),
    queryFn: async () =>
      (await read(api.GET('/v1/suppressions/noted', { params: { query: { email } } }))).suppressions[0] ??
      null,
  })
