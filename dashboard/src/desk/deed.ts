// Changes by the operator: a short message says that one is done, and everything on the page is read again.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { wordsOf } from '../parts/error-note.tsx'
import { toast } from '../parts/toasts.ts'

/** Returns what runs after a change: it shows `said`, reads the page again, then calls `done`. */
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

/** The same for a button alone: a short message shows its error. */
export function useAction<Answer>(run: () => Promise<Answer>, said: (answer: Answer) => string) {
  const { mutate, isPending } = useDeed(run, said)
  return {
    busy: isPending,
    onClick: () => mutate(undefined, { onError: (error) => toast(wordsOf(error).title, 'bad') }),
  }
}
