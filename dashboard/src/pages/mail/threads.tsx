// The second column: the threads of an inbox, newest first, or the messages that a search finds.

import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { MailPlus, PenLine } from 'lucide-react'
import { lazy, Suspense, useEffect, useMemo, useRef } from 'react'
import { Empty } from '../../parts/empty.tsx'
import { Button } from '../../parts/form/button.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { Column } from './column.tsx'
import { InboxMenu } from './inbox-menu.tsx'
import { inboxQuery, refreshThreads, type ThreadSummary, threadsQuery } from './mail-queries.ts'
import { filtersOf, isFiltered, useGo, usePlace } from './place.ts'
import { useHidden, useRemoveThread } from './removal.ts'
import { hrefOf, useFollow } from './row-link.tsx'
import { SearchBar } from './search-bar.tsx'
import { ThreadRow, threadRowPx } from './thread-row.tsx'

const Found = lazy(async () => ({ default: (await import('./found.tsx')).Found }))
const gatherMs = 250
const freshMs = 5_000

export function Threads({ inboxId, className }: { inboxId: string; className: string }) {
  const place = usePlace()
  const go = useGo()
  const may = useMay('change')
  const { data: inbox, error } = useQuery(inboxQuery(inboxId))
  const compose = () => go({ inboxId, threadId: place.threadId, compose: 'new' })
  return (
    <Column
      title={inbox?.address ?? mail.threads}
      head={inbox && <Head address={inbox.address} />}
      className={className}
      onBack={() => go({})}
      actions={
        inbox && (
          <>
            {may && (
              <Button
                size="small"
                variant="primary"
                icon={PenLine}
                aria-label={mail.keys.compose}
                title={mail.keys.compose}
                onClick={compose}
              />
            )}
            <InboxMenu inbox={inbox} />
          </>
        )
      }
      below={!error && <SearchBar key={inboxId} />}
    >
      {isFiltered(place) ? (
        <Suspense fallback={null}>
          <Found inboxId={inboxId} filters={filtersOf(place)} />
        </Suspense>
      ) : (
        <ThreadList inboxId={inboxId} address={inbox?.address ?? ''} />
      )}
    </Column>
  )
}

function Head({ address }: { address: string }) {
  return (
    <div className="flex min-w-0 items-center gap-0.5">
      <span className="min-w-0 truncate font-semibold" title={address}>
        {address}
      </span>
      <CopyButton text={address} what={address} />
    </div>
  )
}

function ThreadList({ inboxId, address }: { inboxId: string; address: string }) {
  const query = useInfiniteQuery(threadsQuery(inboxId))
  const hidden = useHidden()
  const place = usePlace()
  const pages = query.data?.pages
  const threads = useMemo(() => {
    const all = pages?.flatMap((page) => page.threads) ?? []
    return hidden.size === 0 ? all : all.filter(({ id }) => !hidden.has(id))
  }, [pages, hidden])
  useNewest(inboxId)
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the links inside handle the keys
    // biome-ignore lint/a11y/noStaticElementInteractions: it only follows the links inside
    <div onClick={useFollow()} className="h-full">
      <DeleteKey inboxId={inboxId} />
      <VirtualList
        label={mail.threads}
        query={query}
        rows={threads}
        keyOf={idOf}
        rowPx={threadRowPx}
        empty={<EmptyInbox inboxId={inboxId} address={address} />}
      >
        {(thread) => (
          <ThreadRow
            thread={thread}
            href={hrefOf({ inboxId, threadId: thread.id }, place)}
            own={address}
            isOpen={thread.id === place.threadId}
          />
        )}
      </VirtualList>
    </div>
  )
}

const idOf = ({ id }: ThreadSummary) => id

/** Adds new threads at the top, when the list is opened again and while it is visible. */
function useNewest(inboxId: string): void {
  const queries = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    const refresh = () => {
      clearTimeout(timer.current)
      timer.current = setTimeout(() => void refreshThreads(queries, inboxId).catch(() => {}), gatherMs)
    }
    const { dataUpdatedAt = 0 } = queries.getQueryState(threadsQuery(inboxId).queryKey) ?? {}
    if (dataUpdatedAt > 0 && Date.now() - dataUpdatedAt > freshMs) refresh()
    let stop: (() => void) | null = null
    let isOver = false
    void import('../../api/live.ts').then(({ onLiveEvent }) => {
      if (isOver) return
      stop = onLiveEvent(({ type, data }) => {
        if (type === 'stream.reset' || data.message?.inboxId === inboxId) refresh()
      })
    })
    return () => {
      isOver = true
      stop?.()
      clearTimeout(timer.current)
    }
  }, [queries, inboxId])
}

/** Deletes the open thread, or else the thread whose row has the focus. */
function DeleteKey({ inboxId }: { inboxId: string }) {
  const { threadId } = usePlace()
  const go = useGo()
  const may = useMay('change')
  const remove = useRemoveThread()
  useShortcut({ keys: '#', label: mail.keys.delete, group: mail.group }, () => {
    const focused = document.activeElement?.closest<HTMLElement>('[data-thread]')?.dataset['thread']
    const id = threadId ?? focused
    if (!may || !id) return
    void remove(inboxId, id)
    if (threadId) go({ inboxId })
  })
  return null
}

function EmptyInbox({ inboxId, address }: { inboxId: string; address: string }) {
  const go = useGo()
  const may = useMay('change')
  const write = () => go({ inboxId, compose: 'new', rcpt: address })
  return (
    <Empty
      icon={MailPlus}
      title={mail.emptyInbox}
      action={may && address && <Button onClick={write}>{mail.mailYourself}</Button>}
    >
      {mail.emptyInboxWhat}
      {address && (
        <span className="mt-2 flex items-center justify-center gap-1">
          <code className="min-w-0 break-all">{address}</code>
          <CopyButton text={address} what={address} />
        </span>
      )}
    </Empty>
  )
}
