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
    // The pages go before what they show: none of them asks again for what nobody may see any more.
    await navigate({ to: '/sign-in' })
    queries.clear()
    queries.setQueryData(sessionQuery.queryKey, null)
  }
  return () => void end()
}
