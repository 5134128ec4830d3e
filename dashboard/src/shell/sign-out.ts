// Ends the session and forgets what was read with it.
import { useIsMutating, useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ApiError, api, read, setChangeToken } from '../api/client.ts'
import { wordsOf } from '../parts/error-note.tsx'
import { toast } from '../parts/toasts.ts'
import { sessionQuery } from './session.ts'

const mutationKey = ['sign out']

/**
 * The pages go first, and the sign-in waits: the answer comes a second after the end, once every node knows of it. What pages
 * asked for meanwhile would be refused, and a session that began meanwhile would go with the old one's cookie.
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
      // A session that has ended already is what was asked for: not one to come back to, as where a page is refused.
      if (error instanceof ApiError && error.status === 401) return await navigate({ to: '/sign-in' })
      toast(wordsOf(error).title, 'bad')
      await navigate({ to: '/' })
    },
  })
  return mutate
}

/** Whether a session is being ended. */
export function useIsSigningOut(): boolean {
  return useIsMutating({ mutationKey }) > 0
}
