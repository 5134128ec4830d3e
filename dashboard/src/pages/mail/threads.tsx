// The second column: the threads of an inbox, newest first, or the messages that a search finds.

import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { PenLine } from 'lucide-react'
import { lazy, Suspense, useCallback, useEffect, useMemo } from 'react'
import { Button } from '../../parts/form/button.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { Column } from './column.tsx'
import { inboxQuery, type MailRow as Row, threadsQuery } from './mail-queries.ts'
import { MailRow, mailRowPx } from './mail-row.tsx'
import { allInboxes, filtersOf, isFiltered, useGo, usePlace } from './place.ts'
import { useHidden, useRemoveThread } from './removal.ts'
import { hrefOf, useFollow } from './row-link.tsx'
import { SearchBar } from './search-bar.tsx'
import { useNewest } from './use-newest.ts'

const InboxMenu = lazy(async () => ({ default: (await import('./inbox-menu.tsx')).InboxMenu }))
const Found = lazy(async () => ({ default: (await import('./found.tsx')).Found }))
const EmptyInbox = lazy(async () => ({ default: (await import('./empty-inbox.tsx')).EmptyInbox }))
const freshMs = 5_000

export function Threads({ inboxId, className }: { inboxId: string; className: string }) {
  const place = usePlace()
  const go = useGo()
  const may = useMay('change')
  const isAll = inboxId === allInboxes
  const { data: inbox, error } = useQuery({ ...inboxQuery(inboxId), enabled: !isAll })
  const compose = () => go({ inboxId, threadId: place.threadId, compose: 'new' })
  return (
    <Column
      title={isAll ? mail.allInboxes : (inbox?.address ?? mail.threads)}
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
            <Suspense fallback={<span className="size-9" />}>
              <InboxMenu inbox={inbox} />
            </Suspense>
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
    const all = pages?.flatMap(({ rows }) => rows) ?? []
    return hidden.size === 0 ? all : all.filter(({ threadId }) => !hidden.has(threadId))
  }, [pages, hidden])
  useFresh(inboxId)
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
        rowPx={mailRowPx}
        current={place.threadId}
        empty={
          <Suspense fallback={null}>
            <EmptyInbox inboxId={inboxId} address={address} />
          </Suspense>
        }
      >
        {(row) => (
          <MailRow
            row={row}
            href={hrefOf({ inboxId, threadId: row.threadId }, place)}
            isOpen={row.threadId === place.threadId}
            isNamed={inboxId === allInboxes}
          />
        )}
      </VirtualList>
    </div>
  )
}

const idOf = ({ threadId }: Row) => threadId

/** Adds new threads at the top, when the list is opened again and while it is visible. */
function useFresh(inboxId: string): void {
  const queries = useQueryClient()
  const refresh = useCallback(async () => {
    const { refreshThreads } = await import('./refresh-threads.ts')
    await refreshThreads(queries, inboxId)
  }, [queries, inboxId])
  useEffect(() => {
    const { dataUpdatedAt = 0 } = queries.getQueryState(threadsQuery(inboxId).queryKey) ?? {}
    if (dataUpdatedAt > 0 && Date.now() - dataUpdatedAt > freshMs) void refresh().catch(() => {})
  }, [queries, inboxId, refresh])
  useNewest(inboxId, refresh)
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
    void remove(id)
    if (threadId) go({ inboxId })
  })
  return null
}
