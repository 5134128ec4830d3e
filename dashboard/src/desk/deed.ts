// Something that the operator does: sent once, told when it is done, and everything on the page read anew.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { toast } from '../parts/toasts.ts'

/** `said` is told when it is done. Its error stands on the page that shows it. */
export function useDeed<Input, Answer>(
  run: (input: Input) => Promise<Answer>,
  said: (answer: Answer, input: Input) => string,
  done: () => void = () => {},
) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: run,
    onSuccess: async (answer, input) => {
      toast(said(answer, input))
      await queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
      done()
    },
  })
}
