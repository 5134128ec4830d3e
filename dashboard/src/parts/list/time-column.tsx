// A column of times, at the end of a table.
import { Time } from '../time.tsx'
import type { Column } from './table.tsx'

export function timeColumn<Row>(header: string, timeOf: (row: Row) => string): Column<Row> {
  return {
    id: 'time',
    header,
    align: 'right',
    className: 'w-28',
    cell: (row) => <Time value={timeOf(row)} className="whitespace-nowrap text-muted" />,
  }
}
