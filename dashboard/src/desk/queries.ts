// The queries of the desk's pages, each with its key.
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { read } from '../api/client.ts'
import { paged } from '../api/paged.ts'
import { type Answer, api } from './client.ts'

/** The interval at which changing numbers are refetched. */
const liveMs = 5_000
const runningMs = 700

type Status = Answer<'/organizations'>['organizations'][number]['status']

export function useOrganizations({ search, status }: { search?: string; status: Status | '' }) {
  return useInfiniteQuery({
    queryKey: ['organizations', search, status],
    queryFn: ({ pageParam: cursor }) =>
      read(
        api.GET('/organizations', {
          params: { query: { search: search || undefined, status: status || undefined, cursor } },
        }),
      ),
    ...paged,
    placeholderData: keepPreviousData,
    refetchInterval: liveMs * 3,
  })
}

/** Reads the number of organizations in each status. */
export function useCounts() {
  return useQuery({
    queryKey: ['counts'],
    queryFn: async () => (await read(api.GET('/organizations/counts'))).counts,
    refetchInterval: liveMs * 3,
  })
}

export function useOrganization(id: string) {
  return useQuery({
    queryKey: ['organization', id],
    queryFn: () =>
      read(api.GET('/organizations/{organizationId}', { params: { path: { organizationId: id } } })),
    refetchInterval: liveMs * 3,
  })
}

export function useDeletion(id: string) {
  const params = { path: { organizationId: id } }
  return useQuery({
    queryKey: ['deletion', id],
    queryFn: () => read(api.GET('/organizations/{organizationId}/deletion', { params })),
    refetchInterval: ({ state }) => (state.data?.work?.state === 'running' ? runningMs : false),
  })
}

export function useQueues() {
  return useQuery({
    queryKey: ['queues'],
    queryFn: () => read(api.GET('/queues')),
    refetchInterval: liveMs,
  })
}

export function useQueue(queue: string, offset: number) {
  const params = { path: { queue }, query: { offset: String(offset) } }
  return useQuery({
    queryKey: ['queue', queue, offset],
    queryFn: () => read(api.GET('/queues/{queue}', { params })),
    refetchInterval: liveMs,
    placeholderData: keepPreviousData,
  })
}

export function useNodes() {
  return useQuery({ queryKey: ['nodes'], queryFn: () => read(api.GET('/nodes')), refetchInterval: liveMs })
}

export function useHealth() {
  return useQuery({
    queryKey: ['health'],
    queryFn: () => read(api.GET('/health')),
    refetchInterval: ({ state }) => (state.data?.state === 'running' ? runningMs : false),
  })
}

export type MailKind = 'kept' | 'captured'

export function useMails(kind: MailKind) {
  return useInfiniteQuery({
    queryKey: ['mails', kind],
    queryFn: ({ pageParam: cursor }) =>
      read(api.GET('/mail/{kind}', { params: { path: { kind }, query: { cursor } } })),
    ...paged,
  })
}

export function useMail(kind: MailKind, mailId: string) {
  const queries = useQueryClient()
  return useQuery({
    queryKey: ['mail', kind, mailId],
    queryFn: async () => {
      const mail = await read(api.GET('/mail/{kind}/{mailId}', { params: { path: { kind, mailId } } }))
      // Reading a mail marks it as read, so the list has changed.
      void queries.invalidateQueries({ queryKey: ['mails', kind] })
      return mail
    },
  })
}

export function useAudit() {
  return useInfiniteQuery({
    queryKey: ['audit'],
    queryFn: ({ pageParam: cursor }) => read(api.GET('/audit', { params: { query: { cursor } } })),
    ...paged,
  })
}

export function useNumbers() {
  return useQuery({
    queryKey: ['numbers'],
    queryFn: () => read(api.GET('/numbers')),
    refetchInterval: liveMs,
  })
}
