// A list of any length, which renders only visible rows and fetches the next page before the end is reached.
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { lists } from '../../texts/lists.ts'
import { parts } from '../../texts/parts.ts'
import { ErrorNote } from '../error-note.tsx'
import { useShortcut } from '../shortcut.ts'
import { SkeletonRows } from './skeleton.tsx'

const fetchAheadRows = 5
/** Extra rows above and below the visible ones. The rendered range moves in steps of `stepRows`. */
const overscanRows = 12
const stepRows = 6
/** Frames to wait for a row that is not rendered yet. */
const framesWaited = 5

interface VirtualListProps<Row> {
  label: string
  /** The query whose pages contain the rows. */
  query: Pick<
    UseInfiniteQueryResult,
    'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage' | 'isPending' | 'error' | 'refetch'
  >
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** The exact height of every row. Equal heights prevent shifts. */
  rowPx: number
  /** Renders a row as one element, with `data-row` on its focusable link or button. */
  children: (row: Row, index: number) => ReactNode
  /** The key of the current row, which is scrolled into view when it becomes current. */
  current?: string | undefined
  /** Leaves the keys `j` and `k` to another list of the page. */
  isQuiet?: boolean
  /** Shown if there are no rows. */
  empty: ReactNode
  className?: string
}

export function VirtualList<Row>(props: VirtualListProps<Row>) {
  const { query, rows, empty } = props
  if (query.isPending) return <SkeletonRows count={8} />
  if (query.error && rows.length === 0)
    return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
  // A page may be empty and still have a next page, as in a long search.
  if (rows.length === 0) return query.hasNextPage ? <NextPage query={query} /> : empty
  return <Rows {...props} />
}

function NextPage({ query }: Pick<VirtualListProps<unknown>, 'query'>) {
  useFetchAhead(query, 0, 0)
  return <SkeletonRows count={8} />
}

function Rows<Row>(props: VirtualListProps<Row>) {
  const { label, query, rows, keyOf, rowPx, children, isQuiet, className } = props
  const frame = useRef<HTMLDivElement>(null)
  useAnchor(frame, rows, keyOf, rowPx)
  useCurrent(frame, props)
  const { first, end } = useSeen(frame, rowPx)
  useFetchAhead(query, end, rows.length)
  const shown = rows.slice(first, end)
  return (
    <div ref={frame} className={className ?? 'h-full overflow-y-auto'}>
      {!isQuiet && <RowKeys frame={frame} rowPx={rowPx} count={rows.length} />}
      <ul aria-label={label} className="relative" style={{ height: rows.length * rowPx }}>
        {shown.map((row, at) => (
          <li
            key={keyOf(row)}
            data-index={first + at}
            aria-setsize={query.hasNextPage ? -1 : rows.length}
            aria-posinset={first + at + 1}
            className="absolute inset-x-0 top-0"
            style={{ height: rowPx, transform: `translateY(${(first + at) * rowPx}px)` }}
          >
            {children(row, first + at)}
          </li>
        ))}
      </ul>
      {query.isFetchingNextPage && <p className="py-3 text-center text-sm text-faint">{parts.loadingMore}</p>}
      <ErrorNote error={query.error} onRetry={() => void query.fetchNextPage()} />
    </div>
  )
}

type Frame = RefObject<HTMLDivElement | null>

/** Returns the rendered rows, from `first` up to but not including `end`. */
function useSeen(frame: Frame, rowPx: number): { first: number; end: number } {
  const [seen, setSeen] = useState({ first: 0, end: 2 * overscanRows })
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const look = () => {
      const top = Math.floor(element.scrollTop / rowPx / stepRows) * stepRows
      const bottom = Math.ceil((element.scrollTop + element.clientHeight) / rowPx / stepRows) * stepRows
      const next = { first: Math.max(0, top - overscanRows), end: bottom + overscanRows }
      setSeen((before) => (before.first === next.first && before.end === next.end ? before : next))
    }
    const resized = new ResizeObserver(look)
    resized.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    look()
    return () => {
      resized.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [frame, rowPx])
  return seen
}

/** Fetches ahead. After an error it waits for the user, so that it does not retry in a loop. */
function useFetchAhead(query: VirtualListProps<unknown>['query'], end: number, count: number): void {
  const { hasNextPage, isFetchingNextPage, fetchNextPage, error } = query
  const isNear = end >= count - fetchAheadRows
  useEffect(() => {
    if (isNear && hasNextPage && !isFetchingNextPage && !error) void fetchNextPage()
  }, [isNear, hasNextPage, isFetchingNextPage, fetchNextPage, error])
}

/** Keeps the visible rows in place when rows arrive above them. At the very top the new rows appear. */
function useAnchor<Row>(
  frame: Frame,
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

/** Scrolls to the current row once it is there. It may move away later. */
function useCurrent<Row>(frame: Frame, { current, rows, keyOf, rowPx }: VirtualListProps<Row>): void {
  const seen = useRef<string>(undefined)
  useLayoutEffect(() => {
    if (current === seen.current || !frame.current) return
    const at = rows.findIndex((row) => keyOf(row) === current)
    if (at === -1) return
    seen.current = current
    scrollTo(frame.current, at * rowPx, rowPx)
  }, [frame, current, rows, keyOf, rowPx])
}

/** `j` and `k` also reach rows that are not rendered yet. */
function RowKeys({ frame, rowPx, count }: { frame: Frame; rowPx: number; count: number }) {
  const move = (step: 1 | -1) => {
    const element = frame.current
    if (!element) return
    const at = element.querySelector('li:focus-within')?.getAttribute('data-index')
    const next = at ? Number(at) + step : Math.ceil(element.scrollTop / rowPx)
    if (next < 0 || next >= count) return
    scrollTo(element, next * rowPx, rowPx)
    focusRow(element, next, framesWaited)
  }
  useShortcut({ keys: 'j', label: lists.next, group: lists.group }, () => move(1))
  useShortcut({ keys: 'k', label: lists.previous, group: lists.group }, () => move(-1))
  return null
}

/** Focuses the row at once if it is rendered, else in one of the next frames. */
function focusRow(element: HTMLElement, index: number, frames: number): void {
  const row = element.querySelector<HTMLElement>(`[data-index="${index}"] [data-row]`)
  if (row) row.focus({ preventScroll: true })
  else if (frames > 0) requestAnimationFrame(() => focusRow(element, index, frames - 1))
}

function scrollTo(element: HTMLElement, topPx: number, rowPx: number): void {
  const belowPx = topPx + rowPx - element.clientHeight
  if (topPx < element.scrollTop) element.scrollTop = topPx
  else if (belowPx > element.scrollTop) element.scrollTop = belowPx
}
