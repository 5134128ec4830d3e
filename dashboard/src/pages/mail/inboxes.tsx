// The first column: all inboxes together, then each by its newest mail, a search by address or name, and a new inbox.

import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { lazy, Suspense, useDeferredValue, useState } from 'react'
import { classes } from '../../parts/classes.ts'
import { IconButton } from '../../parts/form/button.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { Column } from './column.tsx'
import { type ActiveInbox, inboxesQuery, inboxQuery } from './mail-queries.ts'
import { allInboxes, usePlace } from './place.ts'
import { useNewest } from './use-newest.ts'

const FirstInbox = lazy(async () => ({ default: (await import('./first-inbox.tsx')).FirstInbox }))
const NewInbox = lazy(async () => ({ default: (await import('./new-inbox.tsx')).NewInbox }))
const rowPx = 54
/** From this number on, a search field appears. */
const manyInboxes = 8

export function Inboxes({ className }: { className: string }) {
  const { inboxId } = usePlace()
  const [text, setText] = useState('')
  const [isNew, setIsNew] = useState(false)
  const q = useDeferredValue(text.trim())
  const query = useInfiniteQuery(inboxesQuery(q))
  const may = useMay('change')
  const inboxes = query.data?.pages.flatMap((page) => page.inboxes) ?? []
  const current = useCurrent(q, inboxes)
  const queries = useQueryClient()
  useNewest(allInboxes, () =>
    queries.invalidateQueries({ queryKey: ['inboxes', 'list'] }, { cancelRefetch: false }),
  )
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
        rows={q || inboxes.length < 2 ? inboxes : [all, ...current, ...inboxes]}
        keyOf={keyOf}
        rowPx={rowPx}
        current={inboxId}
        isQuiet={inboxId !== undefined}
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
        {(row) => (row === all ? <AllRow /> : <InboxRow row={row} />)}
      </VirtualList>
      <Suspense fallback={null}>{isNew && <NewInbox onClose={() => setIsNew(false)} />}</Suspense>
    </Column>
  )
}

type Row = ActiveInbox | typeof all
/** The row of all inboxes together. */
const all = allInboxes

function keyOf(row: Row): string {
  return row === all ? all : row.inbox.id
}

/** The open inbox, if it is not among the loaded ones. */
function useCurrent(q: string, inboxes: readonly ActiveInbox[]): ActiveInbox[] {
  const { inboxId = all } = usePlace()
  const isMissing = q === '' && inboxId !== all && !inboxes.some(({ inbox }) => inbox.id === inboxId)
  const { data: inbox } = useQuery({ ...inboxQuery(inboxId), enabled: isMissing && inboxes.length > 0 })
  return isMissing && inbox ? [{ inbox, lastMessageAt: null }] : []
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

const rowStyle =
  'flex h-full flex-col justify-center border-b px-4 -outline-offset-2 hover:bg-hover data-[status=active]:bg-idle-soft'

function AllRow() {
  return (
    <Link
      to="/mail/$inboxId"
      params={{ inboxId: all }}
      data-row
      activeOptions={{ exact: false, includeSearch: false }}
      className={rowStyle}
    >
      <span className="truncate font-medium">{mail.allInboxes}</span>
    </Link>
  )
}

function InboxRow({ row: { inbox, lastMessageAt } }: { row: ActiveInbox }) {
  const { id, address, displayName, localPart } = inbox
  const isNamed = displayName !== localPart
  return (
    <Link
      to="/mail/$inboxId"
      params={{ inboxId: id }}
      data-row
      activeOptions={{ exact: false, includeSearch: false }}
      className={classes(rowStyle, !lastMessageAt && 'text-muted')}
      title={address}
    >
      <span className="flex items-baseline gap-2">
        <span className="min-w-0 flex-1 truncate font-medium">{isNamed ? displayName : localPart}</span>
        {lastMessageAt && <Time value={lastMessageAt} className="shrink-0 text-xs text-faint" />}
      </span>
      <span className="truncate text-sm text-faint">
        {isNamed ? address : address.slice(localPart.length)}
      </span>
    </Link>
  )
}

function NothingFound() {
  return <p className="p-4 text-sm text-faint">{mail.noInboxFound}</p>
}
