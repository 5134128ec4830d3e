// A page of one thing, which is known by its name only when it is loaded: until then its place, or why it cannot be shown.
import type { ReactNode } from 'react'
import { ErrorNote } from '../parts/error-note.tsx'
import { SkeletonRows } from '../parts/list/skeleton.tsx'
import { type Crumb, Page } from '../parts/page.tsx'

interface LoadedPageProps<Value> {
  query: { data: Value | undefined; error: unknown; refetch: () => unknown }
  /** What the page is called meanwhile. */
  title: string
  crumbs: readonly Crumb[]
  children: (value: Value) => ReactNode
}

export function LoadedPage<Value>({ query, title, crumbs, children }: LoadedPageProps<Value>) {
  if (query.data !== undefined) return children(query.data)
  return (
    <Page title={title} crumbs={crumbs}>
      {query.error ? (
        <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
      ) : (
        <SkeletonRows />
      )}
    </Page>
  )
}
