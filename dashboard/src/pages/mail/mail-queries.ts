// The queries of the mail pages.

import {
  type InfiniteData,
  infiniteQueryOptions,
  type QueryClient,
  queryOptions,
} from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'
import { allInboxes } from './place.ts'

export type Inbox = Schemas['Inbox']
export type ActiveInbox = Schemas['ActiveInboxList']['inboxes'][number]
export type MailRow = Schemas['MailRow']
export type Message = Schemas['Message']
export type Mailbox = Schemas['Mailbox']
export type ThreadList = Schemas['ConversationList']
export type Threads = InfiniteData<ThreadList, string | undefined>

/** More than a window shows. */
const firstThreads = 40
const moreThreads = 100

export const inboxesQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['inboxes', 'list', q],
    queryFn: ({ pageParam }) =>
      read(
        api.GET('/v1/mail/inboxes', {
          params: { query: { limit: 100, ...(q ? { q } : {}), cursor: pageParam } },
        }),
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

export const threadsKey = (inboxId: string) => ['threads', inboxId]
export const ofInbox = (inboxId: string) => (inboxId === allInboxes ? {} : { inboxId })

export function readThreads(inboxId: string, cursor?: string): Promise<ThreadList> {
  const query = { ...ofInbox(inboxId), limit: cursor === undefined ? firstThreads : moreThreads, cursor }
  return read(api.GET('/v1/mail/threads', { params: { query } }))
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

/** Removes a deleted thread from all lists. */
export function forgetThread(queries: QueryClient, threadId: string): void {
  queries.setQueriesData<Threads>({ queryKey: ['threads'] }, (known) => {
    if (!known) return known
    const pages = known.pages.map((page) => ({
      ...page,
      rows: page.rows.filter((row) => row.threadId !== threadId),
    }))
    return { ...known, pages }
  })
}

export const threadQuery = (threadId: string) =>
  infiniteQueryOptions({
    queryKey: ['thread', threadId],
    queryFn: ({ pageParam }) =>
      read(
        api.GET('/v1/threads/{threadId}', {
          params: { path: { threadId }, query: { limit: 100, cursor: pageParam } },
        }),
      ),
    ...paged,
  })

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
