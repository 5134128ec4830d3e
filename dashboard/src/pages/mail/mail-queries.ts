// The queries of the mail pages, and the updates that keep a long list of threads current without refetching it.

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
/** New messages become searchable a moment after they arrive. */
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

/** Reads the HTML page of a message. */
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

/** Never refetched, because that would take one request per hundred threads. `refreshThreads` keeps it current. */
export const threadsQuery = (inboxId: string) =>
  infiniteQueryOptions({
    queryKey: threadsKey(inboxId),
    queryFn: ({ pageParam }) => readThreads(inboxId, pageParam),
    ...paged,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })

/** Reads the newest threads and merges them into the top of the list. */
export async function refreshThreads(queries: QueryClient, inboxId: string): Promise<void> {
  if (!queries.getQueryData(threadsKey(inboxId))) return
  const newest = await readThreads(inboxId)
  const known = queries.getQueryData<Threads>(threadsKey(inboxId))
  if (!known) return
  const merged = putAbove(newest, known)
  if (merged) queries.setQueryData(threadsKey(inboxId), merged)
  else await queries.resetQueries({ queryKey: threadsKey(inboxId) })
}

/** Returns null if threads between the newest and the known ones may be missing. */
export function putAbove(newest: ThreadList, known: Threads): Threads | null {
  const [first, ...later] = known.pages
  const oldest = newest.threads.at(-1)
  if (!first || !oldest || newest.nextCursor === null) return { pages: [newest], pageParams: [undefined] }
  const isKnown = new Set(first.threads.map(keyOf))
  if (first.threads.length > 0 && !newest.threads.some((thread) => isKnown.has(keyOf(thread)))) return null
  const ids = new Set(newest.threads.map(({ id }) => id))
  // A known thread that should be among the newest but is not was deleted.
  const isBelow = (thread: ThreadSummary) => !ids.has(thread.id) && compare(thread, oldest) > 0
  const without = (page: ThreadList) =>
    page.threads.every(isBelow) ? page : { ...page, threads: page.threads.filter(isBelow) }
  const top = { threads: [...newest.threads, ...first.threads.filter(isBelow)], nextCursor: first.nextCursor }
  return { pages: [top, ...later.map(without)], pageParams: known.pageParams }
}

function keyOf({ id, lastMessageAt }: ThreadSummary): string {
  return `${lastMessageAt} ${id}`
}

/** Sorts by time, newest first. Threads of the same time are sorted by id, greatest first. */
function compare(one: ThreadSummary, other: ThreadSummary): number {
  const [left, right] = [keyOf(one), keyOf(other)]
  return left === right ? 0 : left < right ? 1 : -1
}

/** Removes a deleted thread from the list. */
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

/** Finds messages by words or filters. `isComplete` on the last page means that everything was searched. */
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
