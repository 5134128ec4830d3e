// One message: folded to a line, or open with its sender, recipients, checks, body and files.

import { CornerUpLeft, CornerUpRight, EllipsisVertical, Reply, ReplyAll, Trash2 } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Badge } from '../../parts/badge.tsx'
import { classes } from '../../parts/classes.ts'
import { IconButton } from '../../parts/form/button.tsx'
import { Menu } from '../../parts/form/menu.tsx'
import type { MenuItem } from '../../parts/form/open-menu.tsx'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { reading } from '../../texts/reading.ts'
import { writing } from '../../texts/writing.ts'
import { Attachments } from './attachments.tsx'
import { Body } from './body.tsx'
import { Details } from './details.tsx'
import type { Mailbox, Message } from './mail-queries.ts'
import { useRemoveMessage } from './removal.ts'
import { useReply } from './reply-bar.tsx'
import { StandingLine } from './standing.tsx'

interface MessageCardProps {
  message: Message
  isOpen: boolean
  /** The thread opens at this message. */
  isStart: boolean
  onFold: () => void
}

export function MessageCard({ message, isOpen, isStart, onFold }: MessageCardProps) {
  const article = useRef<HTMLElement>(null)
  useEffect(() => {
    if (isStart) article.current?.scrollIntoView({ block: 'start' })
  }, [isStart])
  return (
    <article
      ref={article}
      aria-label={`${nameOf(message.from)}: ${message.subject || mail.noSubject}`}
      className="min-w-0 scroll-mt-3 overflow-clip rounded-lg border bg-surface"
    >
      <div className="flex items-start gap-1 pr-1.5">
        <Head message={message} isOpen={isOpen} onFold={onFold} />
        {isOpen && <Actions message={message} />}
      </div>
      {isOpen && <Open message={message} />}
    </article>
  )
}

export function nameOf({ name, email }: Mailbox): string {
  return name || email
}

function Head({ message, isOpen, onFold }: Omit<MessageCardProps, 'isStart'>) {
  const { from, to, direction, createdAt, automatic } = message
  const Direction = direction === 'inbound' ? CornerUpLeft : CornerUpRight
  return (
    <button
      type="button"
      data-head
      aria-expanded={isOpen}
      onClick={onFold}
      className="flex min-w-0 flex-1 items-start gap-3 rounded-lg px-4 py-3 text-left -outline-offset-2"
    >
      <Direction
        size={15}
        role="img"
        aria-label={reading[direction]}
        className={direction === 'inbound' ? 'mt-1 shrink-0 text-faint' : 'mt-1 shrink-0 text-accent'}
      />
      <span className="min-w-0 flex-1">
        <span className="flex min-w-0 flex-wrap items-baseline gap-x-2 sm:flex-nowrap">
          <span
            className={classes(
              'min-w-0 flex-1 font-medium sm:flex-initial sm:truncate',
              isOpen ? 'wrap-anywhere' : 'truncate',
            )}
          >
            {nameOf(from)}
          </span>
          {from.name && (
            <span className="hidden min-w-0 shrink-99 truncate text-sm text-faint sm:block">
              {from.email}
            </span>
          )}
          {automatic && (
            <span className="order-last basis-full sm:order-none sm:basis-auto">
              <Badge tone="idle" title={reading.automaticWhat}>
                {reading.automatic}
              </Badge>
            </span>
          )}
          <Time value={createdAt} className="ml-auto shrink-0 text-xs text-faint" />
        </span>
        <span className="block truncate text-sm text-faint">
          {isOpen ? `${reading.to} ${namesOf(to)}` : snippetOf(message)}
        </span>
      </span>
    </button>
  )
}

const mostNames = 3

function namesOf(mailboxes: readonly Mailbox[]): string {
  if (mailboxes.length === 0) return reading.toNobody
  const names = mailboxes.slice(0, mostNames).map(nameOf).join(', ')
  const more = mailboxes.length - mostNames
  return more > 0 ? `${names} ${reading.andMore(more)}` : names
}

function snippetOf({ extractedText, text }: Message): string {
  return (extractedText || text).slice(0, 200) || reading.emptyText
}

function Actions({ message }: { message: Message }) {
  const reply = useReply(message)
  const remove = useRemoveMessage()
  const may = useMay('change')
  if (!may) return null
  const groups: MenuItem[][] = [
    [
      { label: writing.reply, icon: Reply, onSelect: () => reply('reply') },
      { label: writing.replyAll, icon: ReplyAll, onSelect: () => reply('all') },
    ],
    [{ label: reading.deleteMessage, icon: Trash2, danger: true, onSelect: () => remove(message) }],
  ]
  return (
    <span className="pt-2">
      <Menu groups={groups} trigger={<IconButton icon={EllipsisVertical} label={reading.messageActions} />} />
    </span>
  )
}

function Open({ message }: { message: Message }) {
  const [isDetailed, setIsDetailed] = useState(false)
  return (
    <div className="grid min-w-0 gap-4 px-4 pb-4">
      <StandingLine message={message} isDetailed={isDetailed} onDetails={() => setIsDetailed(!isDetailed)} />
      {isDetailed && <Details message={message} />}
      <Body message={message} />
      <Attachments message={message} />
    </div>
  )
}
