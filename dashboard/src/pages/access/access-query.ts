// The sign-in and sign-up methods of this deployment.
import { queryOptions } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'

export const accessQuery = queryOptions({
  queryKey: ['access'],
  queryFn: () => read(api.GET('/v1/access')),
  staleTime: Number.POSITIVE_INFINITY,
})
