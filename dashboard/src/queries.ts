// The cache of answers: fresh for ten seconds, refetched when the window gets the focus, retried if a retry can help.
import { QueryClient } from '@tanstack/react-query'
import { ApiError } from './api/client.ts'

const staleMs = 10_000
const mostRetries = 2

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: staleMs,
      retry: (count, error) => count < mostRetries && !(error instanceof ApiError && error.status < 500),
    },
  },
})
