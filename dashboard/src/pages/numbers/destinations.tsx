// The domains with the most recipients, and the outcomes of mail to them.
import { Card } from '../../parts/card.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { count } from '../../parts/numbers.ts'
import { numbers } from '../../texts/numbers.ts'
import type { Metrics } from './queries.ts'

type Destination = Metrics['topDestinations'][number]

export function Destinations({ destinations }: { destinations: readonly Destination[] }) {
  return (
    <Card title={numbers.destinations} lead={numbers.destinationsLead} flush={destinations.length > 0}>
      {destinations.length === 0 ? (
        <p className="text-muted">{numbers.noDestinations}</p>
      ) : (
        <Table
          label={numbers.destinations}
          columns={columns}
          rows={destinations}
          keyOf={({ domain }) => domain}
        />
      )}
    </Card>
  )
}

const columns: Column<Destination>[] = [
  {
    id: 'domain',
    header: numbers.domain,
    className: 'max-w-0 w-1/2',
    cell: ({ domain }) => (
      <span className="block truncate" title={domain}>
        {domain}
      </span>
    ),
  },
  { id: 'outcome', header: numbers.outcome, className: 'w-1/3', cell: (row) => <Outcome row={row} /> },
  {
    id: 'recipients',
    header: numbers.recipients,
    align: 'right',
    cell: ({ recipients }) => count(recipients),
  },
]

function Outcome({ row: { recipients, delivered, bounced } }: { row: Destination }) {
  const whole = Math.max(recipients, delivered + bounced, 1)
  const words = numbers.outcomeOf(delivered, bounced, Math.max(0, recipients - delivered - bounced))
  return (
    <span title={words} className="block">
      <span className="sr-only">{words}</span>
      <span aria-hidden className="flex h-1.5 w-full min-w-20 overflow-hidden rounded-full bg-idle-soft">
        <span className="bg-good" style={{ width: `${(delivered / whole) * 100}%` }} />
        <span className="bg-bad" style={{ width: `${(bounced / whole) * 100}%` }} />
      </span>
    </span>
  )
}
