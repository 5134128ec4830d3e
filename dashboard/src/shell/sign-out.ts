// Ends the session and removes the data that was read with it.
import { useIsMutating, useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ApiError, api, read, setChangeToken } from '../api/client.ts'
import { wordsOf } from '../parts/error-note.tsx'
import { toast } from '../parts/toasts.ts'
import { sessionQuery } from './session.ts'

const mutationKey = ['sign out']

/**
 * Leaves the pages first, because the service refuses their requests once the session has ended. The answer comes after a
 * second, once every node knows that the session has ended. The sign-in form waits for it, because the answer deletes the
 * session cookie, and would delete a new one too.
 */
export function useSignOut(): () => void {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { mutate } = useMutation({
    mutationKey,
    mutationFn: async () => {
      await navigate({ to: '/sign-in' })
      await read(api.DELETE('/v1/session'))
    },
    onSuccess: () => {
      setChangeToken(null)
      queries.clear()
      queries.setQueryData(sessionQuery.queryKey, null)
    },
    onError: async (error) => {
      // The session had already ended, which is no error here. There is no page to return to after the next sign-in.
      if (error instanceof ApiError && error.status === 401) return await navigate({ to: '/sign-in' })
      toast(wordsOf(error).title, 'bad')
      await navigate({ to: '/' })
    },
  })
  return mutate
}

/** Returns whether a session is being ended. */
export function useIsSigningOut(): boolean {
  return useIsMutating({ mutationKey }) > 0
}
