// Changes by the operator: a short message says that one is done, and everything on the page is read again.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { toast } from '../parts/toasts.ts'

/** Follows a change: `said` is the message, `done` comes last. */
export function useDone<Answer>(said: (answer: Answer) => string, done: () => void = () => {}) {
  const queries = useQueryClient()
  return async (answer: Answer) => {
    toast(said(answer))
    await queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
    done()
  }
}

/** A change that nobody confirms. The page shows its error. */
export function useDeed<Answer>(
  run: () => Promise<Answer>,
  said: (answer: Answer) => string,
  done?: () => void,
) {
  return useMutation({ mutationFn: run, onSuccess: useDone(said, done) })
}
