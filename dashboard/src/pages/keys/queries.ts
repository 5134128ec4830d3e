// The API queries of the keys page.

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'

export type Key = Schemas['Key']

const pageSize = 100
const watchMs = 3_000

export const keysQuery = infiniteQueryOptions({
  queryKey: ['keys', 'list'],
  queryFn: ({ pageParam }) => readKeys(pageParam),
  ...paged,
})

/** Reads the newest keys. */
export const newestKeysQuery = queryOptions({
  queryKey: ['keys', 'list', 'newest'],
  queryFn: async () => (await readKeys()).keys,
})

/** Polls the newest keys while a person waits for a key's first use. */
export const watchedKeysQuery = queryOptions({
  queryKey: ['keys', 'watched'],
  queryFn: async () => (await readKeys()).keys,
  refetchInterval: watchMs,
})

function readKeys(cursor?: string) {
  const query = { limit: pageSize, cursor }
  return read(api.GET('/v1/keys', { params: { query } }))
}

/** The most inboxes that one search shows. */
export const inboxLimit = 100

export const inboxesQuery = (text: string) =>
  queryOptions({
    queryKey: ['keys', 'inboxes', text],
    queryFn: async () => {
      const query = { limit: inboxLimit, ...(text ? { q: text } : {}) }
      return (await read(api.GET('/v1/inboxes', { params: { query } }))).inboxes
    },
    placeholderData: (shown) => shown,
  })
