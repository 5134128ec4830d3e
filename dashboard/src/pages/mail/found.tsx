// The results of a search: messages, newest first, each a link to its thread.

import { infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query'
import { SearchX } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'
import { Empty } from '../../parts/empty.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { mail } from '../../texts/mail.ts'
import { ofInbox } from './mail-queries.ts'
import { MailRow, mailRowPx } from './mail-row.tsx'
import { allInboxes, type Filters, usePlace } from './place.ts'
import { useHidden } from './removal.ts'
import { hrefOf, useFollow } from './row-link.tsx'

const foundAtOnce = 30
/** New messages become searchable a moment after they arrive, so a search without results repeats for half a minute. */
const lookAgainMs = 3_000
const maxEmptyAnswers = 10

/** Finds messages by words or filters, and again while messages wait to be indexed. */
const foundQuery = (inboxId: string, filters: Filters) =>
  infiniteQueryOptions({
    queryKey: ['found', inboxId, filters],
    queryFn: ({ pageParam }) => {
      const query = { ...ofInbox(inboxId), limit: foundAtOnce, cursor: pageParam, ...asked(filters) }
      return read(api.GET('/v1/mail/messages', { params: { query } }))
    },
    ...paged,
    refetchInterval: ({ state }) => {
      const [first, last] = [state.data?.pages[0], state.data?.pages.at(-1)]
      const isAwaited = first?.rows.length === 0 && state.dataUpdateCount < maxEmptyAnswers
      return isAwaited || last?.indexing ? lookAgainMs : false
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

export function Found({ inboxId, filters }: { inboxId: string; filters: Filters }) {
  const query = useInfiniteQuery(foundQuery(inboxId, filters))
  const hidden = useHidden()
  const place = usePlace()
  const pages = query.data?.pages ?? []
  const found = pages
    .flatMap(({ rows }) => rows)
    .filter(({ messageId, threadId }) => !hidden.has(messageId) && !hidden.has(threadId))
  const isComplete = pages.at(-1)?.complete ?? true
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the links inside handle the keys
    // biome-ignore lint/a11y/noStaticElementInteractions: it only follows the links inside
    <div onClick={useFollow()} className="flex h-full flex-col">
      {!isComplete && (
        <p role="status" className="shrink-0 border-b bg-wait-soft px-4 py-2 text-sm text-wait">
          {mail.foundIncomplete}
        </p>
      )}
      <div className="min-h-0 flex-1">
        <VirtualList
          label={mail.found}
          query={query}
          rows={found}
          keyOf={({ messageId }) => messageId}
          rowPx={mailRowPx}
          current={place.message}
          empty={
            <Empty icon={SearchX} title={mail.foundNothing}>
              {mail.foundNothingWhat}
            </Empty>
          }
        >
          {(row) => (
            <MailRow
              row={row}
              href={hrefOf({ inboxId, threadId: row.threadId, message: row.messageId }, place)}
              isOpen={row.messageId === place.message}
              isNamed={inboxId === allInboxes}
            />
          )}
        </VirtualList>
      </div>
    </div>
  )
}
