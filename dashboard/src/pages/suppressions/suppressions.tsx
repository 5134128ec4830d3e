// The suppressed addresses: search, add, remove, import and export.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Ban, FileUp, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Badge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Button, IconButton } from '../../parts/form/button.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { PagedTable } from '../../parts/list/paged-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { timeColumn } from '../../parts/list/time-column.tsx'
import { Page } from '../../parts/page.tsx'
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
  const mayChange = useMay('change')
  const { gone, remove } = useRemoval()
  const choose = (loaded: readonly Suppression[]) => {
    const matching = loaded.filter(({ email }) => email.toLowerCase().includes(wanted))
    const isMissing = found.data && !matching.some(({ email }) => email === found.data?.email)
    return [...(isMissing && found.data ? [found.data] : []), ...matching].filter(
      ({ email }) => !gone.has(email),
    )
  }
  return (
    <PagedTable
      query={query}
      rowsOf={(page) => page.suppressions}
      choose={choose}
      label={suppressions.list}
      columns={mayChange ? [...columns, removal(remove)] : columns}
      keyOf={({ email }) => email}
      empty={wanted === '' ? <NoneSuppressed /> : <NotFound wanted={wanted} isKnown={found.data === null} />}
    />
  )
}

const columns: Column<Suppression>[] = [
  {
    id: 'email',
    header: suppressions.email,
    className: 'max-w-0 w-1/2',
    cell: ({ email }) => <span className="block truncate font-medium">{email}</span>,
  },
  {
    id: 'reason',
    header: suppressions.reason,
    className: 'max-w-60',
    cell: ({ reason, note }) => (
      <>
        <Badge tone={reason === 'manual' ? 'idle' : 'bad'}>{suppressions.reasons[reason]}</Badge>
        {note && (
          <span title={note} className="block truncate text-xs text-faint">
            {note}
          </span>
        )}
      </>
    ),
  },
  {
    id: 'message',
    header: suppressions.source,
    cell: ({ submissionId }) =>
      submissionId && (
        <Link
          to="/sending/$submissionId"
          params={{ submissionId }}
          className="whitespace-nowrap text-accent underline underline-offset-3"
        >
          {suppressions.seeLife}
        </Link>
      ),
  },
  timeColumn(suppressions.since, ({ createdAt }) => createdAt),
]

function removal(onRemove: (email: string) => void): Column<Suppression> {
  return {
    id: 'remove',
    header: suppressions.actions,
    headerHidden: true,
    className: 'w-12',
    cell: ({ email }) => (
      <IconButton
        size="small"
        icon={Trash2}
        label={suppressions.remove(email)}
        onClick={() => onRemove(email)}
      />
    ),
  }
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
