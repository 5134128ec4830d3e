// The API queries of the members page.
import { queryOptions } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'

export type Member = Schemas['MemberList']['members'][number]
export type Invitation = Schemas['Invitation']
export type Made = Schemas['Made']
export type Role = Member['role']

export const roles: readonly Role[] = ['owner', 'member', 'viewer']

export const membersQuery = queryOptions({
  queryKey: ['members'],
  queryFn: () => read(api.GET('/v1/members')),
})

/** The valid keys, active webhooks and open invitations that the member made. Each dialog reads them again. */
export const madeQuery = (personId: string) =>
  queryOptions({
    queryKey: ['made', personId],
    queryFn: () => read(api.GET('/v1/members/{personId}/made', { params: { path: { personId } } })),
    gcTime: 0,
  })
