// The result of a query: a placeholder while it loads, its error with a retry, or the content.
import type { ReactNode } from 'react'
import { ErrorNote } from './error-note.tsx'
import { SkeletonRows } from './list/skeleton.tsx'
import { type Crumb, Page } from './page.tsx'

interface LoadedProps<Value> {
  /** A query for one object or for a list's pages. */
  query: { data: Value | undefined; error: unknown; refetch: () => unknown }
  /** The placeholder while it loads. A few lines by default. */
  waiting?: ReactNode
  children: (value: Value) => ReactNode
}

export function Loaded<Value>({ query, waiting = <SkeletonRows />, children }: LoadedProps<Value>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
  return waiting
}

interface LoadedPageProps<Value> extends Omit<LoadedProps<Value>, 'waiting'> {
  /** The title until the data is loaded. */
  title: string
  crumbs: readonly Crumb[]
}

/** A page about one object whose name is unknown before it is loaded. */
export function LoadedPage<Value>({ query, title, crumbs, children }: LoadedPageProps<Value>) {
  if (query.data !== undefined) return children(query.data)
  return (
    <Page title={title} crumbs={crumbs}>
      <Loaded query={query}>{() => null}</Loaded>
    </Page>
  )
}
