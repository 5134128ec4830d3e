// The third column: a thread, opened at its newest message. The others are folded, and the middle of a long thread to one line.

import { type UseInfiniteQueryResult, useInfiniteQuery } from '@tanstack/react-query'
import { ChevronsDownUp, ChevronsUpDown, MessageSquareDashed, Trash2 } from 'lucide-react'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { Empty } from '../../parts/empty.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button, ButtonLink, IconButton } from '../../parts/form/button.tsx'
import { LoadMore } from '../../parts/list/load-more.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { useTitle } from '../../parts/use-title.ts'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { reading } from '../../texts/reading.ts'
import { Column } from './column.tsx'
import { useFolds, useMiddle } from './folds.ts'
import { type Message, threadQuery } from './mail-queries.ts'
import { MessageCard } from './message.tsx'
import { useGo, usePlace } from './place.ts'
import { useHidden, useRemoveThread } from './removal.ts'
import { ReplyBar, ReplyKeys } from './reply-bar.tsx'

const Reply = lazy(async () => ({ default: (await import('./compose/reply.tsx')).Reply }))

interface ThreadViewProps {
  inboxId: string
  threadId: string
}

export function ThreadView({ inboxId, threadId }: ThreadViewProps) {
  const query = useInfiniteQuery(threadQuery(threadId))
  const go = useGo()
  const thread = query.data?.pages.at(-1)
  const subject = thread ? thread.subject || mail.noSubject : mail.threads
  useTitle(thread ? subject : mail.title)
  const isGone = query.error instanceof ApiError && query.error.status === 404
  if (isGone) return <Gone />
  return (
    <Column
      title={subject}
      className="flex-1 bg-page"
      onBack={() => go({ inboxId })}
      actions={thread && <Actions inboxId={inboxId} threadId={threadId} />}
    >
      {thread ? (
        <Messages query={query} messages={query.data?.pages.flatMap(({ messages }) => messages) ?? []} />
      ) : query.error ? (
        <div className="p-4">
          <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      ) : (
        <SkeletonRows count={6} />
      )}
    </Column>
  )
}

function Gone() {
  return (
    <div className="flex-1 content-center bg-page">
      <Empty
        icon={MessageSquareDashed}
        title={reading.threadGone}
        action={<ButtonLink to="/mail">{reading.toMail}</ButtonLink>}
      >
        {reading.threadGoneWhat}
      </Empty>
    </div>
  )
}

function Actions({ inboxId, threadId }: ThreadViewProps) {
  const remove = useRemoveThread()
  const go = useGo()
  const may = useMay('change')
  if (!may) return null
  const press = async () => {
    await remove(threadId)
    go({ inboxId })
  }
  return <IconButton icon={Trash2} label={reading.deleteThread} onClick={() => void press()} />
}

type Query = Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage' | 'error'>

function Messages({ query, messages }: { query: Query; messages: Message[] }) {
  const hidden = useHidden()
  const { message: asked, compose, to } = usePlace()
  const list = useRef<HTMLDivElement>(null)
  const shown = useMemo(() => messages.filter(({ id }) => !hidden.has(id)), [messages, hidden])
  const folds = useFolds(shown, query.hasNextPage, asked)
  useAll(query, messages.length)
  const last = shown.at(-1)
  const [start, setStart] = useState(asked)
  if (!start && last && !query.hasNextPage) setStart(last.id)
  const middle = useMiddle(shown, query.hasNextPage, [asked, to])
  const unfold = () => {
    middle.unfold()
    // The button is gone: the focus goes to the first message that it has shown.
    requestAnimationFrame(() => headsOf(list.current)[1]?.focus())
  }
  const target = shown.find(({ id }) => id === to) ?? last
  return (
    <div ref={list} className="h-full overflow-y-auto" data-messages>
      <MessageKeys />
      <div className="mx-auto grid max-w-4xl gap-3 p-3 pb-8 sm:p-4 sm:pb-10">
        {shown.length > 1 && <FoldAll isAllOpen={folds.isAllOpen} onChange={folds.setAll} />}
        {shown.map((message, at) =>
          folds.isAllOpen || at === 0 || at > middle.count ? (
            <MessageCard
              key={message.id}
              message={message}
              isOpen={folds.isOpen(message.id)}
              isStart={message.id === start}
              onFold={() => folds.toggle(message.id)}
            />
          ) : (
            at === 1 && <Middle key="middle" count={middle.count} onUnfold={unfold} />
          ),
        )}
        <LoadMore query={query} />
        <ErrorNote error={query.error} />
        {target && compose && compose !== 'new' ? (
          <Suspense fallback={null}>
            <Reply key={target.id} target={target} everyone={compose === 'all' ? 'all' : 'sender'} />
          </Suspense>
        ) : (
          last && !query.hasNextPage && <ReplyBar target={last} />
        )}
      </div>
      {target && <ReplyKeys target={target} />}
    </div>
  )
}

/** Up to this many messages load without a click, because people look for the last one. */
const readAtOnce = 500

function useAll({ hasNextPage, isFetchingNextPage, fetchNextPage, error }: Query, count: number): void {
  const isWanted = hasNextPage && !isFetchingNextPage && !error && count < readAtOnce
  useEffect(() => {
    if (isWanted) void fetchNextPage()
  }, [isWanted, fetchNextPage])
}

function FoldAll({
  isAllOpen,
  onChange,
}: {
  isAllOpen: boolean
  onChange: (all: 'open' | 'folded') => void
}) {
  return (
    <div className="flex justify-end">
      <Button
        size="small"
        variant="quiet"
        icon={isAllOpen ? ChevronsDownUp : ChevronsUpDown}
        onClick={() => onChange(isAllOpen ? 'folded' : 'open')}
      >
        {isAllOpen ? reading.foldRead : reading.unfoldAll}
      </Button>
    </div>
  )
}

function Middle({ count, onUnfold }: { count: number; onUnfold: () => void }) {
  return (
    <Button variant="quiet" icon={ChevronsUpDown} onClick={onUnfold}>
      {reading.earlier(count)}
    </Button>
  )
}

/** `n` and `p` move between the heads of messages, as `j` and `k` move between rows of a list. */
function MessageKeys() {
  const move = (step: 1 | -1) => {
    const heads = headsOf(document.querySelector('[data-messages]'))
    const at = heads.findIndex((head) => head.closest('article')?.contains(document.activeElement))
    const next = heads[at === -1 ? (step === 1 ? 0 : heads.length - 1) : at + step]
    next?.focus()
    next?.scrollIntoView({ block: 'nearest' })
  }
  useShortcut({ keys: 'n', label: mail.keys.nextMessage, group: mail.group }, () => move(1))
  useShortcut({ keys: 'p', label: mail.keys.previousMessage, group: mail.group }, () => move(-1))
  return null
}

function headsOf(list: Element | null): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>('[data-head]') ?? [])]
}
