// The queries for captured mail, which poll every few seconds because no event announces new mail.

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { ApiError, api, read, type Schemas } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'

export type CapturedRow = Schemas['CapturedList']['captured'][number]
export type CapturedMail = Schemas['CapturedMail']

const pageSize = 100
const refreshMs = 2_500
/** Longer lists are not polled. */
const watchedPages = 2

export const capturedListQuery = infiniteQueryOptions({
  queryKey: ['captured', 'list'],
  queryFn: ({ pageParam }) => {
    const query = { limit: pageSize, cursor: pageParam }
    return read(api.GET('/v1/captured', { params: { query } }))
  },
  ...paged,
  refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) <= watchedPages ? refreshMs : false),
})

export const capturedMailQuery = (capturedId: string) =>
  queryOptions({
    queryKey: ['captured', 'one', capturedId],
    queryFn: () => read(api.GET('/v1/captured/{capturedId}', { params: { path: { capturedId } } })),
    staleTime: Number.POSITIVE_INFINITY,
  })

/** A service that delivers mail does not have this operation. */
export function isNotCapturing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404
}
