// A card with a table, or with a sentence if there are no rows.
import type { ReactNode } from 'react'
import { Card } from '../card.tsx'
import { Table, type TableProps } from './table.tsx'

interface CardTableProps<Row> extends TableProps<Row> {
  /** The sentence. */
  none: string
  /** Stands below the table. */
  children?: ReactNode
}

/** `label` is its title as well. */
export function CardTable<Row>({ none, children, ...table }: CardTableProps<Row>) {
  if (table.rows.length === 0)
    return (
      <Card title={table.label}>
        <p className="text-muted">{none}</p>
      </Card>
    )
  return (
    <Card title={table.label} flush>
      <Table {...table} />
      {children}
    </Card>
  )
}
