// The audit log of the whole deployment.

import { Link } from '@tanstack/react-router'
import { ScrollText } from 'lucide-react'
import { Empty } from '../parts/empty.tsx'
import { PagedTable } from '../parts/list/paged-table.tsx'
import type { Column } from '../parts/list/table.tsx'
import { timeColumn } from '../parts/list/time-column.tsx'
import { TwoLines } from '../parts/list/two-lines.tsx'
import { Page } from '../parts/page.tsx'
import { deskLog as words } from '../texts/desk-log.ts'
import type { Answer } from './client.ts'
import { useAudit } from './queries.ts'

type Row = Answer<'/audit'>['entries'][number]

const columns: readonly Column<Row>[] = [
  { id: 'what', header: words.what, cell: (row) => <What row={row} /> },
  { id: 'who', header: words.who, className: 'min-w-28', cell: (row) => <Who row={row} /> },
  { id: 'where', header: words.where, cell: (row) => <Where row={row} /> },
  timeColumn(words.when, ({ at }) => at),
]

function What({ row: { action, subject, detail } }: { row: Row }) {
  const about = detail === '{}' ? subject : `${subject} · ${detail}`
  return <TwoLines first={words.actions[action] ?? action} second={about} title={about} />
}

function Who({ row: { actor, ip } }: { row: Row }) {
  return <TwoLines first={<span className="font-normal">{actor}</span>} second={ip ?? words.shell} />
}

function Where({ row: { organizationId, organizationName } }: { row: Row }) {
  if (!organizationId) return <span className="text-faint">{words.service}</span>
  return (
    <Link to={`/organizations/${organizationId}`} className="rounded-sm wrap-anywhere hover:underline">
      {organizationName || organizationId}
    </Link>
  )
}

export function Audit() {
  const none = (
    <Empty icon={ScrollText} title={words.none}>
      {words.noneWhat}
    </Empty>
  )
  return (
    <Page title={words.title} lead={words.lead}>
      <PagedTable
        query={useAudit()}
        rowsOf={({ entries }) => entries}
        label={words.title}
        columns={columns}
        keyOf={({ id }) => id}
        empty={none}
      />
    </Page>
  )
}
