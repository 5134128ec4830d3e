// One thread in the list: its participants, subject, number of messages, and last date.

import { memo } from 'react'
import { Time } from '../../parts/time.tsx'
import { mail } from '../../texts/mail.ts'
import type { ThreadSummary } from './mail-queries.ts'
import { RowLink } from './row-link.tsx'

export const threadRowPx = 60
const mostNames = 4

interface ThreadRowProps {
  thread: ThreadSummary
  href: string
  /** The address of the inbox, a participant of every thread. */
  own: string
  isOpen: boolean
}

export const ThreadRow = memo(({ thread, href, own, isOpen }: ThreadRowProps) => {
  const { id, subject, participants, messageCount, lastMessageAt } = thread
  const others = participants.filter((address) => address !== own)
  const names = others.length > 0 ? others : participants
  return (
    <RowLink
      href={href}
      isOpen={isOpen}
      data-thread={id}
      className="flex h-full flex-col justify-center gap-0.5 border-b px-4"
    >
      <span className="flex items-baseline gap-2">
        <span className="min-w-0 flex-1 truncate font-medium">{names.slice(0, mostNames).join(', ')}</span>
        <Time value={lastMessageAt} className="shrink-0 text-xs text-faint" />
      </span>
      <span className="flex items-center gap-2">
        <span className="min-w-0 flex-1 truncate text-sm text-muted">{subject || mail.noSubject}</span>
        {messageCount > 1 && (
          <span
            title={mail.messagesOf(messageCount)}
            className="numbers grid h-4.5 min-w-5 shrink-0 place-items-center rounded-full bg-idle-soft px-1.5 text-xs text-idle"
          >
            {messageCount}
          </span>
        )}
      </span>
    </RowLink>
  )
})
