// Changes by the operator: each shows a short message when it is done, and refetches everything on the page.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { wordsOf } from '../parts/error-note.tsx'
import { toast } from '../parts/toasts.ts'

/** Returns what runs after a change: it shows `said`, refetches the page's data, then calls `done`. */
export function useDone<Answer>(said: (answer: Answer) => string, done: () => void = () => {}) {
  const queries = useQueryClient()
  return async (answer: Answer) => {
    toast(said(answer))
    await queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
    done()
  }
}

/** A change without a confirmation dialog. The page shows its error. */
export function useDeed<Answer>(
  run: () => Promise<Answer>,
  said: (answer: Answer) => string,
  done?: () => void,
) {
  return useMutation({ mutationFn: run, onSuccess: useDone(said, done) })
}

/** A change by a single button. A short message shows its error. */
export function useAction<Answer>(run: () => Promise<Answer>, said: (answer: Answer) => string) {
  const { mutate, isPending } = useDeed(run, said)
  return {
    busy: isPending,
    onClick: () => mutate(undefined, { onError: (error) => toast(wordsOf(error).title, 'bad') }),
  }
}
