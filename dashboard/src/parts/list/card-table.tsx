// A card with a table, or with a sentence if it has no rows.
import type { ReactNode } from 'react'
import { Card } from '../card.tsx'
import { Table, type TableProps } from './table.tsx'

interface CardTableProps<Row> extends TableProps<Row> {
  /** Replaces a table without rows. */
  none: string
  /** Follows the table. */
  children?: ReactNode
}

/** `label` is also the title of the card. */
export function CardTable<Row>({ none, children, ...table }: CardTableProps<Row>) {
  if (table.rows.length === 0)
    return (
      <Card title={table.label}>
        <p className="text-muted">{none}</p>
        {children}
      </Card>
    )
  return (
    <Card title={table.label} flush>
      <Table {...table} />
      {children}
    </Card>
  )
}
