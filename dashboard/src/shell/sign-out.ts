// Ends the session and forgets what was read with it.
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ApiError, api, read, setChangeToken } from '../api/client.ts'
import { wordsOf } from '../parts/error-note.tsx'
import { toast } from '../parts/toasts.ts'
import { sessionQuery } from './session.ts'

export function useSignOut(): () => void {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const end = async () => {
    try {
      await read(api.DELETE('/v1/session'))
    } catch (error) {
      // A session that has ended already is what was asked for.
      if (!(error instanceof ApiError && error.status === 401)) return toast(wordsOf(error).title, 'bad')
    }
    setChangeToken(null)
    queries.clear()
    queries.setQueryData(sessionQuery.queryKey, null)
    await navigate({ to: '/sign-in' })
  }
  return () => void end()
}
