// The suppressed addresses: search, add, remove, import and export.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Ban, FileUp, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Badge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Button, IconButton } from '../../parts/form/button.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/session.ts'
import { suppressions } from '../../texts/suppressions.ts'
import { AddSuppression } from './add-suppression.tsx'
import { ExportButton } from './export-button.tsx'
import { ImportDialog } from './import-dialog.tsx'
import { useRemoval } from './removal.ts'
import { Sides } from './sides.tsx'
import {
  foundQuery,
  isWholeAddress,
  readSuppressions,
  type Suppression,
  suppressionsQuery,
} from './suppression-queries.ts'

const rowPx = 52

export function Suppressions() {
  const { q = '' } = useSearch({ strict: false }) as { q?: string }
  const navigate = useNavigate()
  const search = (text: string) =>
    void navigate({ to: '/suppressions', search: text ? { q: text } : {}, replace: true })
  return (
    <Page title={suppressions.title} lead={suppressions.lead} actions={<Actions />}>
      <Sides />
      <div className="mb-4 max-w-md">
        <TextField
          label={suppressions.search}
          hint={suppressions.searchHint}
          type="search"
          value={q}
          autoComplete="off"
          spellCheck={false}
          placeholder="ada@example.com"
          onChange={(event) => search(event.target.value)}
        />
      </div>
      <Rows wanted={q.trim().toLowerCase()} />
    </Page>
  )
}

function Actions() {
  const [open, setOpen] = useState<'add' | 'import' | null>(null)
  const mayChange = useMay('change')
  const close = () => setOpen(null)
  return (
    <>
      <ExportButton
        filename="suppressions.csv"
        columns={['email', 'reason', 'submissionId', 'createdAt', 'note']}
        fieldsOf={({ email, reason, submissionId, createdAt, note }: Suppression) => [
          ...[email, reason, submissionId, createdAt, note],
        ]}
        readPage={async (cursor) => {
          const { suppressions: rows, nextCursor } = await readSuppressions(cursor)
          return { rows, nextCursor }
        }}
      />
      {mayChange && (
        <>
          <Button icon={FileUp} onClick={() => setOpen('import')}>
            {suppressions.importing}
          </Button>
          <Button variant="primary" icon={Plus} onClick={() => setOpen('add')}>
            {suppressions.add}
          </Button>
          <AddSuppression open={open === 'add'} onClose={close} />
          <ImportDialog open={open === 'import'} onClose={close} />
        </>
      )}
    </>
  )
}

function Rows({ wanted }: { wanted: string }) {
  const query = useInfiniteQuery(suppressionsQuery)
  const found = useQuery(foundQuery(wanted))
  const { gone, remove } = useRemoval()
  const loaded = query.data?.pages.flatMap((page) => page.suppressions) ?? []
  const matching = loaded.filter(({ email }) => email.toLowerCase().includes(wanted))
  const rows = [
    ...(found.data && !matching.some(({ email }) => email === found.data?.email) ? [found.data] : []),
    ...matching,
  ].filter(({ email }) => !gone.has(email))
  return (
    <div className="overflow-clip rounded-lg border bg-surface">
      <VirtualList
        label={suppressions.list}
        query={query}
        rows={rows}
        keyOf={({ email }) => email}
        rowPx={rowPx}
        className="max-h-[max(420px,calc(100dvh-340px))] overflow-y-auto"
        empty={
          wanted === '' ? <NoneSuppressed /> : <NotFound wanted={wanted} isKnown={found.data === null} />
        }
      >
        {(suppression) => <SuppressionRow suppression={suppression} onRemove={remove} />}
      </VirtualList>
    </div>
  )
}

interface RowProps {
  suppression: Suppression
  onRemove: (email: string) => void
}

function SuppressionRow({ suppression, onRemove }: RowProps) {
  const { email, reason, submissionId, createdAt, note } = suppression
  const mayChange = useMay('change')
  return (
    <div
      data-row
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys j and k focus rows
      tabIndex={0}
      className="grid h-full grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 border-b px-4 -outline-offset-2 sm:grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)_120px_92px_36px] sm:px-5"
    >
      <span className="min-w-0">
        <span className="block truncate font-medium">{email}</span>
        <span className="block truncate text-xs text-faint sm:hidden">
          {[suppressions.reasons[reason], note].filter(Boolean).join(' · ')}
        </span>
      </span>
      <span className="hidden min-w-0 sm:block">
        <Badge tone={reason === 'manual' ? 'idle' : 'bad'}>{suppressions.reasons[reason]}</Badge>
        {note && (
          <span title={note} className="block truncate text-xs text-faint">
            {note}
          </span>
        )}
      </span>
      <span className="hidden text-sm sm:block">
        {submissionId && (
          <Link
            to="/sending/$submissionId"
            params={{ submissionId }}
            className="text-accent underline underline-offset-3"
          >
            {suppressions.seeLife}
          </Link>
        )}
      </span>
      <Time value={createdAt} className="hidden text-right text-sm text-faint sm:block" />
      {mayChange && (
        <IconButton
          size="small"
          icon={Trash2}
          label={suppressions.remove(email)}
          onClick={() => onRemove(email)}
        />
      )}
    </div>
  )
}

function NoneSuppressed() {
  return (
    <Empty icon={Ban} title={suppressions.none}>
      {suppressions.noneWhat}
    </Empty>
  )
}

function NotFound({ wanted, isKnown }: { wanted: string; isKnown: boolean }) {
  return (
    <p role="status" className="px-5 py-8 text-center text-muted">
      {isKnown && isWholeAddress(wanted) ? suppressions.notSuppressed(wanted) : suppressions.noneLoaded}
    </p>
  )
}
