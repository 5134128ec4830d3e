// What the pages of the desk read, each under its key.
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import type { AuditList } from '../../../src/operator/desk/schemas/audit.ts'
import type { Health } from '../../../src/operator/desk/schemas/health.ts'
import type { Mail, MailList } from '../../../src/operator/desk/schemas/mail.ts'
import type { NodeList, Numbers } from '../../../src/operator/desk/schemas/node.ts'
import type {
  Deletion,
  Organization,
  OrganizationCounts,
  OrganizationList,
} from '../../../src/operator/desk/schemas/organization.ts'
import type { Queue, QueueList } from '../../../src/operator/desk/schemas/queue.ts'
import { ask } from './client.ts'

/** What changes by itself is read again as often. */
const liveMs = 5_000
const runningMs = 700

export function useOrganizations(filter: { search?: string; status?: string }) {
  return useInfiniteQuery({
    queryKey: ['organizations', filter],
    queryFn: ({ pageParam }) =>
      ask<OrganizationList>(`/organizations${written({ ...filter, cursor: pageParam })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    placeholderData: keepPreviousData,
    refetchInterval: liveMs * 3,
  })
}

/** How many organizations of each status there are. */
export function useCounts() {
  return useQuery({
    queryKey: ['counts'],
    queryFn: async () => (await ask<OrganizationCounts>('/organizations/counts')).counts,
    refetchInterval: liveMs * 3,
  })
}

export function useOrganization(id: string) {
  return useQuery({
    queryKey: ['organization', id],
    queryFn: () => ask<Organization>(`/organizations/${id}`),
    refetchInterval: liveMs * 3,
  })
}

export function useDeletion(id: string) {
  return useQuery({
    queryKey: ['deletion', id],
    queryFn: () => ask<Deletion>(`/organizations/${id}/deletion`),
    refetchInterval: ({ state }) => (state.data?.work?.state === 'running' ? runningMs : false),
  })
}

export function useQueues() {
  return useQuery({
    queryKey: ['queues'],
    queryFn: () => ask<QueueList>('/queues'),
    refetchInterval: liveMs,
  })
}

export function useQueue(key: string, offset: number) {
  return useQuery({
    queryKey: ['queue', key, offset],
    queryFn: () => ask<Queue>(`/queues/${encodeURIComponent(key)}?offset=${offset}`),
    refetchInterval: liveMs,
    placeholderData: keepPreviousData,
  })
}

export function useNodes() {
  return useQuery({ queryKey: ['nodes'], queryFn: () => ask<NodeList>('/nodes'), refetchInterval: liveMs })
}

export function useHealth() {
  return useQuery({
    queryKey: ['health'],
    queryFn: () => ask<Health>('/health'),
    refetchInterval: ({ state }) => (state.data?.state === 'running' ? runningMs : false),
  })
}

export function useMails(kind: string) {
  return useInfiniteQuery({
    queryKey: ['mails', kind],
    queryFn: ({ pageParam }) => ask<MailList>(`/mail/${kind}${written({ cursor: pageParam })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })
}

export function useMail(kind: string, id: string) {
  const queries = useQueryClient()
  return useQuery({
    queryKey: ['mail', kind, id],
    queryFn: async () => {
      const mail = await ask<Mail>(`/mail/${kind}/${id}`)
      // It is read now, and the list says so.
      void queries.invalidateQueries({ queryKey: ['mails', kind] })
      return mail
    },
  })
}

export function useAudit() {
  return useInfiniteQuery({
    queryKey: ['audit'],
    queryFn: ({ pageParam }) => ask<AuditList>(`/audit${written({ cursor: pageParam })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })
}

export function useNumbers() {
  return useQuery({ queryKey: ['numbers'], queryFn: () => ask<Numbers>('/numbers'), refetchInterval: liveMs })
}

/** A query string of what is not empty. */
function written(parameters: Record<string, string | undefined>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => Boolean(pair[1]))
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}
