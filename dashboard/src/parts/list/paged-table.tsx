// A list that is fetched page by page, as a table or as rendered by `children`.
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Card } from '../card.tsx'
import { ErrorNote } from '../error-note.tsx'
import { Loaded } from '../loaded.tsx'
import { LoadMore } from './load-more.tsx'
import { Table, type TableProps } from './table.tsx'

interface PagedProps<Page, Row> {
  query: UseInfiniteQueryResult<{ pages: Page[] }>
  rowsOf: (page: Page) => readonly Row[]
  /** Narrows the loaded rows to those of a search. */
  choose?: ((rows: readonly Row[]) => readonly Row[]) | undefined
  /** Replaces a list without rows. */
  empty: ReactNode
}

interface PagedRowsProps<Page, Row> extends PagedProps<Page, Row> {
  children: (rows: readonly Row[]) => ReactNode
}

export function PagedRows<Page, Row>({ query, rowsOf, choose, empty, children }: PagedRowsProps<Page, Row>) {
  return (
    <Loaded query={query}>
      {({ pages }) => {
        const loaded = pages.flatMap(rowsOf)
        const rows = choose?.(loaded) ?? loaded
        if (rows.length === 0 && !query.hasNextPage) return empty
        return (
          <Card flush>
            {rows.length > 0 ? children(rows) : empty}
            <Failure query={query} />
            <LoadMore query={query} />
          </Card>
        )
      }}
    </Loaded>
  )
}

/** An error after the first page: in the next page or in a refetch. */
function Failure({ query }: { query: UseInfiniteQueryResult }) {
  if (!query.error) return null
  const retry = () => void (query.isFetchNextPageError ? query.fetchNextPage() : query.refetch())
  return (
    <div className="p-3">
      <ErrorNote error={query.error} onRetry={retry} />
    </div>
  )
}

type PagedTableProps<Page, Row> = PagedProps<Page, Row> & Omit<TableProps<Row>, 'rows'>

export function PagedTable<Page, Row>({
  query,
  rowsOf,
  choose,
  empty,
  ...table
}: PagedTableProps<Page, Row>) {
  return (
    <PagedRows query={query} rowsOf={rowsOf} choose={choose} empty={empty}>
      {(rows) => <Table {...table} rows={rows} />}
    </PagedRows>
  )
}
