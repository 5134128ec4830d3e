// A list of any length: only what is seen is in the page, and the next part is fetched before its end is reached.
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef } from 'react'
import { lists } from '../texts/lists.ts'
import { parts } from '../texts/parts.ts'
import { ErrorNote } from './error-note.tsx'
import { useShortcut } from './shortcut.ts'
import { SkeletonRows } from './skeleton.tsx'

const fetchAheadRows = 15
const overscanRows = 12

interface VirtualListProps<Row> {
  label: string
  /** The query whose pages the rows are of. */
  query: Pick<
    UseInfiniteQueryResult,
    'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage' | 'isPending' | 'error' | 'refetch'
  >
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** How high a row is, exactly: rows that all have one height never shift. */
  rowPx: number
  /** A row: one element with `data-row` on what takes the focus (a link or a button). */
  children: (row: Row, index: number) => ReactNode
  /** What stands there when there is none. */
  empty: ReactNode
  className?: string
}

type Wheel = Virtualizer<HTMLDivElement, Element>

export function VirtualList<Row>(props: VirtualListProps<Row>) {
  const { label, query, rows, keyOf, rowPx, children, empty, className } = props
  const frame = useRef<HTMLDivElement>(null)
  const wheel = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    // All rows have one height, so that their places need no keys: with 100,000 of them that is what keeps scrolling smooth.
    estimateSize: () => rowPx,
    overscan: overscanRows,
  })
  const shown = wheel.getVirtualItems()
  useRowKeys(frame, wheel, rows.length)
  useAnchor(frame, rows, keyOf, rowPx)
  useFetchAhead(query, shown.at(-1)?.index ?? -1, rows.length)
  if (query.isPending) return <SkeletonRows count={8} />
  if (query.error && rows.length === 0)
    return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
  if (rows.length === 0) return empty
  return (
    <div ref={frame} className={className ?? 'h-full overflow-y-auto'}>
      <ul aria-label={label} className="relative" style={{ height: wheel.getTotalSize() }}>
        {shown.map(({ index, start }) => (
          <li
            key={keyOf(rows[index]!)}
            data-index={index}
            aria-setsize={query.hasNextPage ? -1 : rows.length}
            aria-posinset={index + 1}
            className="absolute inset-x-0 top-0"
            style={{ height: rowPx, transform: `translateY(${start}px)` }}
          >
            {children(rows[index]!, index)}
          </li>
        ))}
      </ul>
      {query.isFetchingNextPage && <p className="py-3 text-center text-sm text-faint">{parts.loadingMore}</p>}
      <ErrorNote error={query.error} onRetry={() => void query.fetchNextPage()} />
    </div>
  )
}

/** A page that failed is fetched again when someone asks, not in a circle. */
function useFetchAhead(query: VirtualListProps<unknown>['query'], last: number, count: number): void {
  const { hasNextPage, isFetchingNextPage, fetchNextPage, error } = query
  const isNear = count > 0 && last >= count - fetchAheadRows
  useEffect(() => {
    if (isNear && hasNextPage && !isFetchingNextPage && !error) void fetchNextPage()
  }, [isNear, hasNextPage, isFetchingNextPage, fetchNextPage, error])
}

/** Rows that come in above what is read do not move it; at the very top they are what one waits for. */
function useAnchor<Row>(
  frame: RefObject<HTMLDivElement | null>,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  rowPx: number,
): void {
  const before = useRef(rows)
  useLayoutEffect(() => {
    const known = before.current
    before.current = rows
    const element = frame.current
    const first = Math.floor((element?.scrollTop ?? 0) / rowPx)
    const anchor = known[first]
    if (!element || first === 0 || !anchor || known === rows) return
    const key = keyOf(anchor)
    if (rows[first] && keyOf(rows[first]) === key) return
    const at = rows.findIndex((row) => keyOf(row) === key)
    if (at !== -1) element.scrollTop += (at - first) * rowPx
  }, [frame, rows, keyOf, rowPx])
}

/** `j` and `k` also reach rows that are not in the page yet. */
function useRowKeys(frame: RefObject<HTMLDivElement | null>, wheel: Wheel, count: number): void {
  const move = (step: 1 | -1) => {
    const at = frame.current?.querySelector('li:focus-within')?.getAttribute('data-index')
    const next = at ? Number(at) + step : (wheel.range?.startIndex ?? 0)
    if (next < 0 || next >= count) return
    wheel.scrollToIndex(next, { align: 'auto' })
    requestAnimationFrame(() =>
      frame.current
        ?.querySelector<HTMLElement>(`[data-index="${next}"] [data-row]`)
        ?.focus({ preventScroll: true }),
    )
  }
  useShortcut({ keys: 'j', label: lists.next, group: lists.group }, () => move(1))
  useShortcut({ keys: 'k', label: lists.previous, group: lists.group }, () => move(-1))
}
