// The session: the signed-in person as the service last reported it, and the rights of their role.
import { queryOptions, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { api, read, type Schemas, setChangeToken } from '../api/client.ts'

export type Session = Schemas['Session']

const staleMs = 60_000
/** Queries that belong to no organization. */
const nobodys = ['session', 'access', 'invitation']

/** The session, or null if the user is not signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: staleMs,
  queryFn: async (): Promise<Session | null> => {
    const session = (await read(api.GET('/v1/session'))) ?? null
    setChangeToken(session?.csrfToken ?? null)
    return session
  },
})

/** The session on the pages behind the sign-in. */
export function useSession(): Session {
  const { data: session } = useSuspenseQuery(sessionQuery)
  if (!session) throw new Error('this page needs a session')
  return session
}

/** `change`: owners and members. `own`: owners. Pages hide forbidden actions, and the service refuses them anyway. */
export function useMay(what: 'change' | 'own'): boolean {
  const role = useSession().organization?.role
  return what === 'own' ? role === 'owner' : role === 'owner' || role === 'member'
}

/** Returns a function that stores a new session. It removes cached data if the person or the organization changed. */
export function useTakeSession(): (session: Session) => void {
  const queries = useQueryClient()
  return (session) => {
    setChangeToken(session.csrfToken)
    const before = queries.getQueryData(sessionQuery.queryKey)
    if (before?.person.id !== session.person.id || before.organization?.id !== session.organization?.id)
      queries.removeQueries({ predicate: ({ queryKey }) => !nobodys.includes(String(queryKey[0])) })
    queries.setQueryData(sessionQuery.queryKey, session)
  }
}
