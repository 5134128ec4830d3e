// The first column: the inboxes, a search by address or name, and the button for a new inbox.

import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { lazy, Suspense, useDeferredValue, useState } from 'react'
import { classes } from '../../parts/classes.ts'
import { IconButton } from '../../parts/form/button.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { Column } from './column.tsx'
import { type Inbox, inboxesQuery } from './mail-queries.ts'

const FirstInbox = lazy(async () => ({ default: (await import('./first-inbox.tsx')).FirstInbox }))
const NewInbox = lazy(async () => ({ default: (await import('./new-inbox.tsx')).NewInbox }))
const rowPx = 54
/** From this number on, a search field appears. */
const manyInboxes = 8

export function Inboxes({ className }: { className: string }) {
  const [text, setText] = useState('')
  const [isNew, setIsNew] = useState(false)
  const q = useDeferredValue(text.trim())
  const query = useInfiniteQuery(inboxesQuery(q))
  const may = useMay('change')
  const inboxes = query.data?.pages.flatMap((page) => page.inboxes) ?? []
  const isSearchable = q !== '' || text !== '' || inboxes.length >= manyInboxes
  const open = () => setIsNew(true)
  return (
    <Column
      title={mail.inboxes}
      className={className}
      actions={may && <IconButton icon={Plus} label={mail.newInbox} onClick={open} />}
      below={isSearchable && <Finder text={text} onChange={setText} />}
    >
      <VirtualList
        label={mail.inboxes}
        query={query}
        rows={inboxes}
        keyOf={({ id }) => id}
        rowPx={rowPx}
        empty={
          q ? (
            <NothingFound />
          ) : (
            <Suspense fallback={null}>
              <FirstInbox onOpen={may ? open : null} />
            </Suspense>
          )
        }
      >
        {(inbox) => <InboxRow inbox={inbox} />}
      </VirtualList>
      <Suspense fallback={null}>{isNew && <NewInbox onClose={() => setIsNew(false)} />}</Suspense>
    </Column>
  )
}

function Finder({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  return (
    <div className="shrink-0 border-b p-2">
      <input
        type="search"
        aria-label={mail.findInbox}
        placeholder={mail.findInbox}
        value={text}
        onChange={(event) => onChange(event.target.value)}
        className="control h-8 text-sm"
      />
    </div>
  )
}

function InboxRow({ inbox: { id, address, displayName, localPart } }: { inbox: Inbox }) {
  const isNamed = displayName !== localPart
  return (
    <Link
      to="/mail/$inboxId"
      params={{ inboxId: id }}
      data-row
      activeOptions={{ exact: false, includeSearch: false }}
      className={classes(
        'flex h-full flex-col justify-center border-b px-4 -outline-offset-2 hover:bg-hover',
        'data-[status=active]:bg-idle-soft',
      )}
      title={address}
    >
      <span className="truncate font-medium">{isNamed ? displayName : localPart}</span>
      <span className="truncate text-sm text-faint">
        {isNamed ? address : address.slice(localPart.length)}
      </span>
    </Link>
  )
}

function NothingFound() {
  return <p className="p-4 text-sm text-faint">{mail.noInboxFound}</p>
}
