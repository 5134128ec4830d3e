// The results of a search: messages, newest first, each a link to its thread.

import { useInfiniteQuery } from '@tanstack/react-query'
import { SearchX } from 'lucide-react'
import { Empty } from '../../parts/empty.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { Time } from '../../parts/time.tsx'
import { mail } from '../../texts/mail.ts'
import { reading } from '../../texts/reading.ts'
import { foundQuery, type Message } from './mail-queries.ts'
import { type Filters, usePlace } from './place.ts'
import { useHidden } from './removal.ts'
import { hrefOf, RowLink, useFollow } from './row-link.tsx'

const rowPx = 78
const mostSnippet = 160

export function Found({ inboxId, filters }: { inboxId: string; filters: Filters }) {
  const query = useInfiniteQuery(foundQuery(inboxId, filters))
  const hidden = useHidden()
  const place = usePlace()
  const pages = query.data?.pages ?? []
  const messages = pages
    .flatMap((page) => page.messages)
    .filter(({ id, threadId }) => !hidden.has(id) && !hidden.has(threadId))
  const isComplete = pages.at(-1)?.isComplete ?? true
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
          rows={messages}
          keyOf={({ id }) => id}
          rowPx={rowPx}
          empty={
            <Empty icon={SearchX} title={mail.foundNothing}>
              {mail.foundNothingWhat}
            </Empty>
          }
        >
          {(message) => (
            <FoundRow
              message={message}
              href={hrefOf({ ...message, message: message.id }, place)}
              isOpen={message.id === place.message}
            />
          )}
        </VirtualList>
      </div>
    </div>
  )
}

function FoundRow({ message, href, isOpen }: { message: Message; href: string; isOpen: boolean }) {
  const { threadId, direction, from, to, subject, createdAt } = message
  const who = direction === 'inbound' ? [from] : to
  const snippet = (message.extractedText || message.text).slice(0, mostSnippet)
  return (
    <RowLink
      href={href}
      isOpen={isOpen}
      data-thread={threadId}
      className="flex h-full flex-col justify-center border-b px-4"
    >
      <span className="flex items-baseline gap-2">
        <span className="min-w-0 flex-1 truncate font-medium">
          {direction === 'outbound' && <span className="text-faint">{reading.to} </span>}
          {who.map(({ name, email }) => name || email).join(', ')}
        </span>
        <Time value={createdAt} className="shrink-0 text-xs text-faint" />
      </span>
      <span className="truncate text-sm text-muted">{subject || mail.noSubject}</span>
      <span className="truncate text-sm text-faint">{snippet}</span>
    </RowLink>
  )
}
