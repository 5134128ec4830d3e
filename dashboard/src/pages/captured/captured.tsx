// Captured mail as a mailbox: the list next to one mail, or one of the two at a time on a phone.
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { AtSign, MailOpen, SearchX, Trash2 } from 'lucide-react'
import { lazy, Suspense, useDeferredValue, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { classes } from '../../parts/classes.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Empty } from '../../parts/empty.tsx'
import { IconButton } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { SearchField } from '../../parts/form/search-field.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { useTitle } from '../../parts/use-title.ts'
import { useMay } from '../../shell/session.ts'
import { captured } from '../../texts/captured.ts'
import { lists } from '../../texts/lists.ts'
import { parts } from '../../texts/parts.ts'
import { Column, WaitingColumn } from '../mail/column.tsx'
import { CapturedRowLink, capturedRowPx } from './captured-row.tsx'
import { type CapturedRow, capturedListQuery, isNotCapturing } from './queries.ts'

const CapturedMailView = lazy(async () => ({
  default: (await import('./captured-mail.tsx')).CapturedMailView,
}))

export function Captured() {
  const { capturedId } = useParams({ strict: false }) as { capturedId?: string }
  const query = useInfiniteQuery(capturedListQuery)
  const [text, setText] = useState('')
  const wanted = useDeferredValue(text.trim().toLowerCase())
  const all = query.data?.pages.flatMap((page) => page.captured) ?? []
  const rows = all.filter((row) => fits(row, wanted))
  useTitle(captured.title)
  if (isNotCapturing(query.error)) return <NotCapturing />
  const isEmpty = query.data !== undefined && all.length === 0
  return (
    <div data-fills-window className="flex h-[calc(100dvh-6.75rem)] min-w-0 bg-surface md:h-dvh">
      <h1 className="sr-only">{captured.title}</h1>
      <BackKey isOpen={capturedId !== undefined} />
      <Column
        title={captured.title}
        actions={
          <>
            <span role="status" className="numbers text-sm text-faint">
              {captured.count(rows.length, query.hasNextPage)}
            </span>
            {all.length > 0 && <Clear />}
          </>
        }
        below={
          all.length > 0 && (
            <div className="border-b px-4 py-2">
              <SearchField label={captured.find} group={captured.title} value={text} onChange={setText} />
            </div>
          )
        }
        className={classes(
          'lg:flex lg:w-96 lg:flex-none lg:border-r',
          capturedId ? 'hidden' : 'flex-1',
          isEmpty && 'lg:w-full',
        )}
      >
        <VirtualList
          label={captured.list}
          query={query}
          rows={rows}
          keyOf={({ id }) => id}
          rowPx={capturedRowPx}
          empty={isEmpty ? <NothingYet /> : <NoneFound />}
        >
          {(row) => <CapturedRowLink row={row} isOpen={row.id === capturedId} />}
        </VirtualList>
      </Column>
      {capturedId ? (
        <Suspense fallback={<WaitingColumn />}>
          <CapturedMailView key={capturedId} capturedId={capturedId} />
        </Suspense>
      ) : (
        !isEmpty && <Choose />
      )}
    </div>
  )
}

/** The list fetches page after page until rows are found, so the filter covers all captured mail. */
function fits({ subject, recipients, from, sender }: CapturedRow, wanted: string): boolean {
  const all = [subject, ...recipients, from?.name, from?.email, sender].join(' ').toLowerCase()
  return all.includes(wanted)
}

function NoneFound() {
  return (
    <Empty icon={SearchX} title={captured.noneFound}>
      {captured.noneFoundWhat}
    </Empty>
  )
}

function Clear() {
  const [isAsking, setIsAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  if (!useMay('change')) return null
  return (
    <>
      <IconButton size="small" icon={Trash2} label={captured.clear} onClick={() => setIsAsking(true)} />
      <Confirm
        open={isAsking}
        onClose={() => setIsAsking(false)}
        title={captured.clearTitle}
        deed={captured.clear}
        change={() => read(api.DELETE('/v1/captured'))}
        onDone={async () => {
          setIsAsking(false)
          await navigate({ to: '/captured' })
          await queries.resetQueries({ queryKey: ['captured'] })
        }}
      >
        {captured.clearWhat}
      </Confirm>
    </>
  )
}

function BackKey({ isOpen }: { isOpen: boolean }) {
  const navigate = useNavigate()
  useShortcut({ keys: 'Escape', label: parts.back, group: lists.group }, () => {
    if (isOpen) void navigate({ to: '/captured' })
  })
  return null
}

function Choose() {
  return (
    <div className="hidden flex-1 content-center bg-page lg:grid">
      <Empty icon={MailOpen} title={captured.choose}>
        {captured.chooseWhat}
        <p className="mt-2 text-sm text-faint">{captured.what}</p>
      </Empty>
    </div>
  )
}

function NothingYet() {
  const example = `curl -X POST "${location.origin}/v1/inboxes/$INBOX/messages" \\
  -H "x-api-key: $POSTHORN_KEY" \\
  -H "content-type: application/json" \\
  -H "idempotency-key: try-$(date +%s)" \\
  -d '{"to": [{"email": "ada@example.com"}],
       "subject": "Hello", "text": "Hello"}'`
  return (
    <Empty
      icon={AtSign}
      title={captured.empty}
      code={<CodeBlock code={example} label={captured.asProgram} />}
    >
      {captured.emptyWhat}
    </Empty>
  )
}

function NotCapturing() {
  return (
    <Empty icon={AtSign} title={captured.unavailable}>
      {captured.unavailableWhat}
    </Empty>
  )
}
