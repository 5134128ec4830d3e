// What the mail pages read, and how a long list of threads stays current without being read again.

import {
  type InfiniteData,
  infiniteQueryOptions,
  type QueryClient,
  queryOptions,
} from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'
import type { Filters } from './place.ts'

export type Inbox = Schemas['Inbox']
export type ThreadSummary = Schemas['ThreadSummary']
export type Message = Schemas['Message']
export type Mailbox = Schemas['Mailbox']
type ThreadList = Schemas['ThreadList']
type Threads = InfiniteData<ThreadList, string | undefined>

/** More than a window shows. */
const firstThreads = 40
const moreThreads = 100
const foundAtOnce = 30
/** What has just come is found a moment later. */
const lookAgainMs = 3_000

export const inboxesQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['inboxes', 'list', q],
    queryFn: ({ pageParam }) =>
      read(
        api.GET('/v1/inboxes', { params: { query: { limit: 50, ...(q ? { q } : {}), cursor: pageParam } } }),
      ),
    ...paged,
  })

export const inboxQuery = (inboxId: string) =>
  queryOptions({
    queryKey: ['inboxes', 'one', inboxId],
    queryFn: () => read(api.GET('/v1/inboxes/{inboxId}', { params: { path: { inboxId } } })),
    staleTime: 60_000,
  })

/** A message as a page. */
export const pageQuery = (messageId: string) =>
  queryOptions({
    queryKey: ['page', messageId],
    queryFn: () => read(api.GET('/v1/messages/{messageId}/page', { params: { path: { messageId } } })),
    staleTime: Number.POSITIVE_INFINITY,
  })

const threadsKey = (inboxId: string) => ['threads', inboxId]

function readThreads(inboxId: string, cursor?: string): Promise<ThreadList> {
  const query = { limit: cursor === undefined ? firstThreads : moreThreads, cursor }
  return read(api.GET('/v1/inboxes/{inboxId}/threads', { params: { path: { inboxId }, query } }))
}

/** Never read again by itself: that would be one request for each page of a hundred. `refreshThreads` keeps it current. */
export const threadsQuery = (inboxId: string) =>
  infiniteQueryOptions({
    queryKey: threadsKey(inboxId),
    queryFn: ({ pageParam }) => readThreads(inboxId, pageParam),
    ...paged,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })

/** Reads the newest threads and puts them above those that are known. */
export async function refreshThreads(queries: QueryClient, inboxId: string): Promise<void> {
  if (!queries.getQueryData(threadsKey(inboxId))) return
  const newest = await readThreads(inboxId)
  const known = queries.getQueryData<Threads>(threadsKey(inboxId))
  if (!known) return
  const merged = putAbove(newest, known)
  if (merged) queries.setQueryData(threadsKey(inboxId), merged)
  else await queries.resetQueries({ queryKey: threadsKey(inboxId) })
}

/** Null where there may be threads between the newest and those that are known. */
export function putAbove(newest: ThreadList, known: Threads): Threads | null {
  const [first, ...later] = known.pages
  const oldest = newest.threads.at(-1)
  if (!first || !oldest || newest.nextCursor === null) return { pages: [newest], pageParams: [undefined] }
  const isKnown = new Set(first.threads.map(keyOf))
  if (first.threads.length > 0 && !newest.threads.some((thread) => isKnown.has(keyOf(thread)))) return null
  const ids = new Set(newest.threads.map(({ id }) => id))
  // A known one that would stand among the newest, and does not, is gone.
  const isBelow = (thread: ThreadSummary) => !ids.has(thread.id) && compare(thread, oldest) > 0
  const without = (page: ThreadList) =>
    page.threads.every(isBelow) ? page : { ...page, threads: page.threads.filter(isBelow) }
  const top = { threads: [...newest.threads, ...first.threads.filter(isBelow)], nextCursor: first.nextCursor }
  return { pages: [top, ...later.map(without)], pageParams: known.pageParams }
}

function keyOf({ id, lastMessageAt }: ThreadSummary): string {
  return `${lastMessageAt} ${id}`
}

/** The order of the list: the latest first, and of those of one moment the one with the greatest id. */
function compare(one: ThreadSummary, other: ThreadSummary): number {
  const [left, right] = [keyOf(one), keyOf(other)]
  return left === right ? 0 : left < right ? 1 : -1
}

/** Takes threads out of the list, for they have been deleted here. */
export function forgetThread(queries: QueryClient, inboxId: string, threadId: string): void {
  queries.setQueryData<Threads>(threadsKey(inboxId), (known) => {
    if (!known) return known
    const pages = known.pages.map((page) => ({
      ...page,
      threads: page.threads.filter(({ id }) => id !== threadId),
    }))
    return { ...known, pages }
  })
}

export const threadQuery = (threadId: string) =>
  infiniteQueryOptions({
    queryKey: ['thread', threadId],
    queryFn: ({ pageParam }) =>
      read(
        api.GET('/v1/threads/{threadId}', { params: { path: { threadId }, query: { cursor: pageParam } } }),
      ),
    ...paged,
  })

/** Messages, by their words or by filters. `isComplete` of the last page: everything has been searched. */
export const foundQuery = (inboxId: string, filters: Filters) =>
  infiniteQueryOptions({
    queryKey: ['found', inboxId, filters],
    queryFn: async ({ pageParam }) => {
      const query = { limit: foundAtOnce, cursor: pageParam, ...asked(filters) }
      const answer = api.GET('/v1/inboxes/{inboxId}/messages', { params: { path: { inboxId }, query } })
      const page = await read(answer)
      const { response } = await answer
      return { ...page, isComplete: response.headers.get('search-complete') !== '?0' }
    },
    ...paged,
    refetchInterval: ({ state }) => {
      const [first, last] = [state.data?.pages[0], state.data?.pages.at(-1)]
      return first?.messages.length === 0 || last?.isComplete === false ? lookAgainMs : false
    },
  })

function asked({ q, direction, from: sender, since }: Filters) {
  return {
    ...(q ? { q } : {}),
    ...(direction === 'inbound' || direction === 'outbound' ? { direction } : {}),
    ...(sender ? { from: sender } : {}),
    ...(since ? { since: new Date(`${since}T00:00:00`).toISOString() } : {}),
  } as { q?: string; direction?: 'inbound' | 'outbound'; from?: string; since?: string }
}

export const limitsQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => read(api.GET('/v1/me')),
  staleTime: 60_000,
})

export const replyPlanQuery = (messageId: string) =>
  queryOptions({
    queryKey: ['reply-plan', messageId],
    queryFn: () => read(api.GET('/v1/messages/{messageId}/reply-plan', { params: { path: { messageId } } })),
    staleTime: Number.POSITIVE_INFINITY,
  })
