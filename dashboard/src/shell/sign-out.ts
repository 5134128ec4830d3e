// Ends the session and removes the data that was read with it.
import { useIsMutating, useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ApiError, api, read, setChangeToken } from '../api/client.ts'
import { wordsOf } from '../parts/error-note.tsx'
import { toast } from '../parts/toasts.ts'
import { sessionQuery } from './session.ts'

const mutationKey = ['sign out']

/**
 * Closes the pages first, because the service would refuse their requests meanwhile. The sign-in form waits for the
 * answer, which comes after a second, once every node knows. A session that began meanwhile would lose its cookie with
 * the old one.
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
      // The session has already ended, as intended. Unlike a refused page, there is no page to return to.
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
