// How answers are kept between pages: fresh for ten seconds, asked again when the window is looked at, retried where that helps.
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
