// Inboxes, threads and messages in three columns, or one at a time on a phone.

import { useInfiniteQuery } from '@tanstack/react-query'
import { Inbox as InboxIcon, MailOpen } from 'lucide-react'
import { lazy, Suspense, useEffect } from 'react'
import { classes } from '../../parts/classes.ts'
import { Empty } from '../../parts/empty.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { useTitle } from '../../parts/use-title.ts'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { WaitingColumn } from './column.tsx'
import { Inboxes } from './inboxes.tsx'
import { inboxesQuery } from './mail-queries.ts'
import { allInboxes, useGo, usePlace } from './place.ts'
import { Threads } from './threads.tsx'

const ThreadView = lazy(async () => ({ default: (await import('./thread.tsx')).ThreadView }))
const NewMessage = lazy(async () => ({ default: (await import('./compose/new-message.tsx')).NewMessage }))
/** At this width all three columns are visible. */
const wide = matchMedia('(min-width: 1024px)')

export function Mail() {
  const { inboxId, threadId, compose } = usePlace()
  const writesFrom = inboxId === allInboxes ? undefined : inboxId
  const isEmpty = useFirstInbox(inboxId)
  useTitle(mail.title)
  return (
    <div
      data-fills-window
      className="flex h-[calc(100dvh-3.25rem-56px-env(safe-area-inset-bottom))] min-w-0 bg-surface md:h-dvh"
    >
      <h1 className="sr-only">{mail.title}</h1>
      <BackKey />
      <Inboxes
        className={
          isEmpty && !inboxId
            ? 'flex-1'
            : classes(
                'lg:flex lg:w-58 lg:flex-none lg:border-r',
                inboxId ? 'hidden' : 'flex-1 md:max-lg:w-80 md:max-lg:flex-none md:max-lg:border-r',
              )
        }
      />
      {inboxId ? (
        <Threads
          key={inboxId}
          inboxId={inboxId}
          className={classes('md:flex md:w-88 md:flex-none md:border-r', threadId ? 'hidden' : 'flex-1')}
        />
      ) : (
        !isEmpty && <Nothing what="inbox" />
      )}
      {inboxId && threadId && (
        <Suspense fallback={<WaitingColumn />}>
          <ThreadView key={threadId} inboxId={inboxId} threadId={threadId} />
        </Suspense>
      )}
      {inboxId && !threadId && <Nothing what="thread" />}
      <Suspense fallback={null}>
        {writesFrom && compose === 'new' && <NewMessage inboxId={writesFrom} />}
      </Suspense>
      {writesFrom && <ComposeKey inboxId={writesFrom} />}
    </div>
  )
}

/** Opens the inbox with the newest mail on a wide window. Returns whether there is no inbox at all. */
function useFirstInbox(inboxId: string | undefined): boolean {
  const { data } = useInfiniteQuery(inboxesQuery(''))
  const go = useGo()
  const first = data?.pages[0]?.inboxes[0]?.inbox.id
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs only while no inbox is open
  useEffect(() => {
    // While another page's code loads, this page is still here, but the address is that page's already.
    const isHere = /^\/mail\/?$/.test(location.pathname)
    if (!inboxId && first && wide.matches && isHere) go({ inboxId: first }, 'replace')
  }, [inboxId, first])
  return data !== undefined && first === undefined
}

function Nothing({ what }: { what: 'inbox' | 'thread' }) {
  const [icon, title, text] =
    what === 'inbox'
      ? [InboxIcon, mail.chooseInbox, mail.chooseInboxWhat]
      : [MailOpen, mail.chooseThread, mail.chooseThreadWhat]
  return (
    <div className="hidden flex-1 content-center bg-page md:grid">
      <Empty icon={icon} title={title}>
        {text}
      </Empty>
    </div>
  )
}

function BackKey() {
  const { inboxId, threadId } = usePlace()
  const go = useGo()
  const back = () => {
    if (threadId) go({ inboxId })
    else if (inboxId && !wide.matches) go({})
  }
  useShortcut({ keys: 'u', label: mail.keys.back, group: mail.group }, back)
  useShortcut({ keys: 'Escape', label: mail.keys.back, group: mail.group }, back)
  return null
}

function ComposeKey({ inboxId }: { inboxId: string }) {
  const { threadId } = usePlace()
  const go = useGo()
  const may = useMay('change')
  useShortcut({ keys: 'c', label: mail.keys.compose, group: mail.group }, () => {
    if (may) go({ inboxId, threadId, compose: 'new' })
  })
  return null
}
