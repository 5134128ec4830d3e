// The audit log of the whole deployment.
import { Link } from '@tanstack/react-router'
import { ScrollText } from 'lucide-react'
import { Card } from '../parts/card.tsx'
import { Empty } from '../parts/empty.tsx'
import { LoadMore } from '../parts/list/load-more.tsx'
import { type Column, Table } from '../parts/list/table.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Page } from '../parts/page.tsx'
import { Time } from '../parts/time.tsx'
import { deskLog as words } from '../texts/desk-log.ts'
import type { Answer } from './client.ts'
import { useAudit } from './queries.ts'

type Row = Answer<'/audit'>['entries'][number]

const columns: readonly Column<Row>[] = [
  { id: 'what', header: words.what, cell: (row) => <What row={row} /> },
  { id: 'who', header: words.who, className: 'min-w-28', cell: (row) => <Who row={row} /> },
  { id: 'where', header: words.where, wideOnly: true, cell: (row) => <Where row={row} /> },
  {
    id: 'when',
    header: words.when,
    align: 'right',
    className: 'w-28',
    cell: ({ at }) => <Time value={at} className="whitespace-nowrap text-muted" />,
  },
]

function What({ row: { action, subject, detail } }: { row: Row }) {
  const about = detail === '{}' ? subject : `${subject} · ${detail}`
  return (
    <span className="block min-w-0">
      <span className="block font-medium">{words.actions[action] ?? action}</span>
      <span className="line-clamp-2 text-xs wrap-anywhere text-faint" title={about}>
        {about}
      </span>
    </span>
  )
}

function Who({ row: { actor, ip } }: { row: Row }) {
  return (
    <span className="block min-w-0">
      <span className="block wrap-anywhere">{actor}</span>
      <span className="block text-xs wrap-anywhere text-faint">{ip ?? words.shell}</span>
    </span>
  )
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
  const query = useAudit()
  return (
    <Page title={words.title} lead={words.lead}>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap(({ entries }) => entries)
          if (rows.length === 0)
            return (
              <Empty icon={ScrollText} title={words.none}>
                {words.noneWhat}
              </Empty>
            )
          return (
            <Card flush>
              <Table label={words.title} columns={columns} rows={rows} keyOf={({ id }) => id} />
              <LoadMore query={query} />
            </Card>
          )
        }}
      </Loaded>
    </Page>
  )
}
