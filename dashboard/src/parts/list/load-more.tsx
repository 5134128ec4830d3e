// The end of a short list, with a button that loads the rest.
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { parts } from '../../texts/parts.ts'
import { Button } from '../form/button.tsx'

type Query = Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>

export function LoadMore({ query }: { query: Query }) {
  if (!query.hasNextPage) return null
  return (
    <div className="flex justify-center p-3">
      <Button size="small" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {parts.more}
      </Button>
    </div>
  )
}
