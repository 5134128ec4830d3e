// A table of a list that is fetched page by page.
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Card } from '../card.tsx'
import { Loaded } from '../loaded.tsx'
import { LoadMore } from './load-more.tsx'
import { Table, type TableProps } from './table.tsx'

interface PagedTableProps<Page, Row> extends Omit<TableProps<Row>, 'rows'> {
  query: UseInfiniteQueryResult<{ pages: Page[] }>
  rowsOf: (page: Page) => readonly Row[]
  /** Stands in place of a table without rows. */
  empty: ReactNode
}

export function PagedTable<Page, Row>({ query, rowsOf, empty, ...table }: PagedTableProps<Page, Row>) {
  return (
    <Loaded query={query}>
      {({ pages }) => {
        const rows = pages.flatMap(rowsOf)
        if (rows.length === 0) return empty
        return (
          <Card flush>
            <Table {...table} rows={rows} />
            <LoadMore query={query} />
          </Card>
        )
      }}
    </Loaded>
  )
}
