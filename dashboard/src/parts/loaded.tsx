// What a query brings: its place while it loads, its error with another try, or the page made of it.
import type { ReactNode } from 'react'
import { ErrorNote } from './error-note.tsx'
import { SkeletonRows } from './list/skeleton.tsx'
import { type Crumb, Page } from './page.tsx'

interface LoadedProps<Value> {
  /** Of one thing, or of a list's pages. */
  query: { data: Value | undefined; error: unknown; refetch: () => unknown }
  /** What stands there while it loads; a few lines where it does not say. */
  waiting?: ReactNode
  children: (value: Value) => ReactNode
}

export function Loaded<Value>({ query, waiting = <SkeletonRows />, children }: LoadedProps<Value>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
  return waiting
}

interface LoadedPageProps<Value> extends Omit<LoadedProps<Value>, 'waiting'> {
  /** The title until it is loaded. */
  title: string
  crumbs: readonly Crumb[]
}

/** A page about one thing, whose name is not known before it is loaded. */
export function LoadedPage<Value>({ query, title, crumbs, children }: LoadedPageProps<Value>) {
  if (query.data !== undefined) return children(query.data)
  return (
    <Page title={title} crumbs={crumbs}>
      <Loaded query={query}>{() => null}</Loaded>
    </Page>
  )
}
