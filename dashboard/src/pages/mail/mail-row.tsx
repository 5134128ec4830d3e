// One row of a list of mail: a conversation with its newest message, or a message that a search found.
import { Paperclip } from 'lucide-react'
import { memo } from 'react'
import { Time } from '../../parts/time.tsx'
import { mail } from '../../texts/mail.ts'
import { reading } from '../../texts/reading.ts'
import type { MailRow as Row } from './mail-queries.ts'
import { RowLink } from './row-link.tsx'

export const mailRowPx = 80

interface MailRowProps {
  row: Row
  href: string
  isOpen: boolean
  /** Shows the inbox of the mail, in a list of all inboxes. */
  isNamed: boolean
}

export const MailRow = memo(({ row, href, isOpen, isNamed }: MailRowProps) => {
  const { threadId, address, direction, from, to, subject, snippet, hasFiles, messageCount, at } = row
  const who = direction === 'inbound' ? [from] : to
  return (
    <RowLink
      href={href}
      isOpen={isOpen}
      data-thread={threadId}
      className="flex h-full flex-col justify-center border-b px-4"
    >
      <span className="flex items-baseline gap-2">
        <span className="min-w-0 flex-1 truncate font-medium">
          {direction === 'outbound' && <span className="font-normal text-faint">{reading.to} </span>}
          {who.map(({ name, email }) => name || email).join(', ') || reading.toNobody}
        </span>
        <Time value={at} className="shrink-0 text-xs text-faint" />
      </span>
      <span className="flex items-center gap-2">
        <span className="min-w-0 flex-1 truncate text-sm text-muted">{subject || mail.noSubject}</span>
        {hasFiles && (
          <Paperclip size={13} role="img" aria-label={mail.hasFiles} className="shrink-0 text-faint" />
        )}
        {messageCount > 1 && (
          <span
            title={mail.messagesOf(messageCount)}
            className="numbers grid h-4.5 min-w-5 shrink-0 place-items-center rounded-full bg-idle-soft px-1.5 text-xs text-idle"
          >
            {messageCount}
          </span>
        )}
      </span>
      <span className="flex items-baseline gap-2 text-sm text-faint">
        <span className="min-w-0 flex-1 truncate">{snippet || reading.emptyText}</span>
        {isNamed && (
          <span title={address} className="max-w-24 shrink-0 truncate text-xs">
            {address.slice(0, address.lastIndexOf('@'))}
          </span>
        )}
      </span>
    </RowLink>
  )
})
