// Captured mail as a mailbox: the list next to one mail, or one of the two at a time on a phone.
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { AtSign, MailOpen } from 'lucide-react'
import { lazy, Suspense } from 'react'
import { classes } from '../../parts/classes.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Empty } from '../../parts/empty.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { useTitle } from '../../parts/use-title.ts'
import { captured } from '../../texts/captured.ts'
import { lists } from '../../texts/lists.ts'
import { parts } from '../../texts/parts.ts'
import { Column, WaitingColumn } from '../mail/column.tsx'
import { CapturedRowLink, capturedRowPx } from './captured-row.tsx'
import { capturedListQuery, isNotCapturing } from './queries.ts'

const CapturedMailView = lazy(async () => ({
  default: (await import('./captured-mail.tsx')).CapturedMailView,
}))

export function Captured() {
  const { capturedId } = useParams({ strict: false }) as { capturedId?: string }
  const query = useInfiniteQuery(capturedListQuery)
  const rows = query.data?.pages.flatMap((page) => page.captured) ?? []
  useTitle(captured.title)
  if (isNotCapturing(query.error)) return <NotCapturing />
  const isEmpty = query.data !== undefined && rows.length === 0
  return (
    <div data-fills-window className="flex h-[calc(100dvh-6.75rem)] min-w-0 bg-surface md:h-dvh">
      <h1 className="sr-only">{captured.title}</h1>
      <BackKey isOpen={capturedId !== undefined} />
      <Column
        title={captured.title}
        actions={
          <span className="numbers pr-2 text-sm text-faint">
            {captured.count(rows.length, query.hasNextPage)}
          </span>
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
          empty={<NothingYet />}
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
  -H "x-api-key: $POSTHORN_KEY" -H 'content-type: application/json' \\
  -H "idempotency-key: try-$(date +%s)" \\
  -d '{"to": [{"email": "ada@example.com"}], "subject": "Hello", "text": "Hello"}'`
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
