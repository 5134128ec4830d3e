// The query of a search by words or filters, in an inbox or in all.
import { infiniteQueryOptions } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'
import { ofInbox } from './mail-queries.ts'
import type { Filters } from './place.ts'

const foundAtOnce = 30
/** New messages become searchable a moment after they arrive. */
const lookAgainMs = 3_000

/** Finds messages by words or filters. `complete` on the last page means that everything was searched. */
export const foundQuery = (inboxId: string, filters: Filters) =>
  infiniteQueryOptions({
    queryKey: ['found', inboxId, filters],
    queryFn: ({ pageParam }) => {
      const query = { ...ofInbox(inboxId), limit: foundAtOnce, cursor: pageParam, ...asked(filters) }
      return read(api.GET('/v1/mail/messages', { params: { query } }))
    },
    ...paged,
    refetchInterval: ({ state }) => {
      const [first, last] = [state.data?.pages[0], state.data?.pages.at(-1)]
      return first?.rows.length === 0 || last?.complete === false ? lookAgainMs : false
    },
  })

function asked({ q, direction, from: sender, since }: Filters) {
  return {
    ...(q ? { q } : {}),
    ...(direction === 'inbound' || direction === 'outbound' ? { direction } : {}),
    ...(sender ? { from: sender } : {}),
    ...(since ? { since: new Date(`${since}T00:00:00`).toISOString() } : {}),
  } as { q?: string; direction?: 'inbound' | 'outbound'; from?: string; since?: string }
}
