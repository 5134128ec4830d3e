// Who is signed in, kept as the service last said it, and what their role lets them do.
import { queryOptions, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { api, read, type Schemas, setChangeToken } from '../api/client.ts'

export type Session = Schemas['Session']

const staleMs = 60_000
/** What was read of no organization. */
const nobodys = ['session', 'access', 'invitation']

/** The session, or null where nobody is signed in. */
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

/** `change`: not a viewer; `own`: an owner. What a member may not do is not shown; the service refuses it all the same. */
export function useMay(what: 'change' | 'own'): boolean {
  const role = useSession().organization?.role
  return what === 'own' ? role === 'owner' : role === 'owner' || role === 'member'
}

/** What to do with the session of an answer: another person or organization must not see what was read before. */
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
