// What the page of keys asks the API.

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

/** The newest keys. */
export const newestKeysQuery = queryOptions({
  queryKey: ['keys', 'list', 'newest'],
  queryFn: async () => (await readKeys()).keys,
})

/** The newest keys, asked again and again while somebody waits for the first use of one. */
export const watchedKeysQuery = queryOptions({
  queryKey: ['keys', 'watched'],
  queryFn: async () => (await readKeys()).keys,
  refetchInterval: watchMs,
})

function readKeys(cursor?: string) {
  const query = { limit: pageSize, cursor }
  return read(api.GET('/v1/keys', { params: { query } }))
}

export const inboxesQuery = (text: string) =>
  queryOptions({
    queryKey: ['keys', 'inboxes', text],
    queryFn: async () => {
      const query = { limit: 20, ...(text ? { q: text } : {}) }
      return (await read(api.GET('/v1/inboxes', { params: { query } }))).inboxes
    },
    placeholderData: (shown) => shown,
  })
