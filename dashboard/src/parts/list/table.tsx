// A table whose rows open by click, `j`, `k` and Enter. On a phone each row has a second line for what does not fit.
import { Link } from '@tanstack/react-router'
import { type MouseEvent, type ReactNode, type RefObject, useRef } from 'react'
import { classes } from '../classes.ts'
import { useIsNarrow } from '../use-narrow.ts'
import { useListKeys } from './list-keys.ts'

export interface Column<Row> {
  id: string
  header: string
  cell: (row: Row) => ReactNode
  align?: 'right'
  /** On a phone it stays on the first line, without its header. The other columns follow on the second line. */
  aside?: boolean
  /** A class that sets its width, such as `w-32`. */
  className?: string
  /** Only screen readers get the header. On a phone such a column is `aside`. */
  headerHidden?: boolean
}

interface RowProps<Row> {
  columns: readonly Column<Row>[]
  /** The target of a row, such as `/domains/…`, or null if it has none. The first column is its link. */
  linkOf?: ((row: Row) => string | null) | undefined
  /** Opens a row that has no address. The first column is then its button. */
  onOpen?: ((row: Row) => void) | undefined
}

export interface TableProps<Row> extends RowProps<Row> {
  label: string
  rows: readonly Row[]
  keyOf: (row: Row) => string
}

export function Table<Row>(props: TableProps<Row>) {
  const body = useRef<HTMLElement>(null)
  useListKeys(body)
  return useIsNarrow() ? <NarrowTable {...props} body={body} /> : <WideTable {...props} body={body} />
}

type Body<Row> = TableProps<Row> & { body: RefObject<HTMLElement | null> }

function WideTable<Row>({ label, columns, rows, keyOf, body, ...row }: Body<Row>) {
  return (
    <div className="overflow-x-auto">
      <table aria-label={label} className="w-full text-left text-sm">
        <thead>
          <tr className="border-b">
            {columns.map((column) => (
              <th key={column.id} scope="col" className={cellLook(column, 'h-9 font-medium text-faint')}>
                <span className={column.headerHidden ? 'sr-only' : ''}>{column.header}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body as RefObject<HTMLTableSectionElement | null>}>
          {rows.map((one) => (
            <WideRow key={keyOf(one)} row={one} columns={columns} {...row} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function NarrowTable<Row>({ label, rows, keyOf, body, ...row }: Body<Row>) {
  return (
    <ul ref={body as RefObject<HTMLUListElement | null>} aria-label={label} className="text-sm">
      {rows.map((one) => (
        <NarrowRow key={keyOf(one)} row={one} {...row} />
      ))}
    </ul>
  )
}

function cellLook<Row>({ align, className }: Column<Row>, more: string): string {
  return classes('px-2 first:pl-5 last:pr-5', align === 'right' && 'numbers text-right', className, more)
}

/** Its buttons stay clickable, although the row's link covers the whole row. */
const aboveLink = 'relative z-[1] w-fit max-w-full empty:hidden has-[button,a]:z-[2]'

const opener =
  'after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent'

/** Clicks on content above the link, such as selectable text, open the row too. */
function openByClick({ target, currentTarget }: MouseEvent<HTMLElement>): void {
  if (target instanceof Element && target.closest('a, button, input, label')) return
  if (getSelection()?.isCollapsed) currentTarget.querySelector<HTMLElement>('[data-row]')?.click()
}

function lookOf<Row>({ row, linkOf, onOpen }: RowProps<Row> & { row: Row }) {
  const isOpened = Boolean(linkOf?.(row)) || onOpen !== undefined
  const className = classes(
    'relative border-b last:border-b-0',
    isOpened && 'focus-within:bg-hover hover:bg-hover',
  )
  return { isOpened, frame: { className, onClick: isOpened ? openByClick : undefined } }
}

function WideRow<Row>(props: RowProps<Row> & { row: Row }) {
  const { row } = props
  const { isOpened, frame } = lookOf(props)
  return (
    <tr {...frame}>
      {props.columns.map((column, index) => (
        <td key={column.id} className={cellLook(column, 'h-11 py-1.5')}>
          {index === 0 ? (
            <First {...props} />
          ) : (
            <div className={classes(isOpened && aboveLink, column.align === 'right' && 'ml-auto')}>
              {column.cell(row)}
            </div>
          )}
        </td>
      ))}
    </tr>
  )
}

function NarrowRow<Row>(props: RowProps<Row> & { row: Row }) {
  const { row } = props
  const { isOpened, frame } = lookOf(props)
  const others = props.columns.slice(1)
  const asides = others.filter(({ aside, headerHidden }) => aside || headerHidden)
  const below = others.filter((column) => !asides.includes(column))
  const above = isOpened ? aboveLink : ''
  return (
    <li {...frame} className={classes(frame.className, 'grid grid-cols-[minmax(0,1fr)] gap-1 px-4 py-2.5')}>
      <div className="flex items-start justify-between gap-3">
        <div className="min-w-0 flex-1">
          <First {...props} />
        </div>
        {asides.map((column) => (
          <div key={column.id} className={classes('shrink-0', above)}>
            {column.cell(row)}
          </div>
        ))}
      </div>
      <div className={classes('flex flex-wrap items-baseline gap-x-4 gap-y-1 empty:hidden', above)}>
        {below.map((column) => (
          <SecondLine key={column.id} column={column} row={row} />
        ))}
      </div>
    </li>
  )
}

/** Leaves out a column that has nothing to say. */
function SecondLine<Row>({ column: { header, cell }, row }: { column: Column<Row>; row: Row }) {
  const content = cell(row)
  if (content === null || content === undefined || content === '') return null
  return (
    <div className="flex min-w-0 items-baseline gap-1.5">
      <span className="shrink-0 text-xs text-faint">{header}</span>
      <div className="numbers min-w-0 wrap-anywhere">{content}</div>
    </div>
  )
}

/** The first column, which opens the row. */
function First<Row>({ row, columns, linkOf, onOpen }: RowProps<Row> & { row: Row }) {
  const content = columns[0]?.cell(row)
  const to = linkOf?.(row)
  if (to)
    return (
      <Link to={to} data-row className={opener}>
        {content}
      </Link>
    )
  if (!onOpen) return content
  return (
    <button
      type="button"
      data-row
      onClick={() => onOpen(row)}
      className={classes('block w-full text-left', opener)}
    >
      {content}
    </button>
  )
}
