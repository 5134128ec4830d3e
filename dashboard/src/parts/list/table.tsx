// A table of rows that can be opened: by a click anywhere, by `j`, `k` and Enter. Columns that matter less are not on a phone.
import { Link } from '@tanstack/react-router'
import { type MouseEvent, type ReactNode, useRef } from 'react'
import { classes } from '../classes.ts'
import { useListKeys } from './list-keys.ts'

export interface Column<Row> {
  id: string
  header: string
  cell: (row: Row) => ReactNode
  align?: 'right'
  /** Not shown below 640 px. */
  wideOnly?: boolean
  /** A class that bounds its width, as `w-32`. */
  className?: string
  /** Its header is only for who hears the page. */
  headerHidden?: boolean
}

export interface TableProps<Row> {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** Where a row leads, as `/domains/…`; the first column is its link. */
  linkOf?: (row: Row) => string
  /** What opens a row that has no address of its own; then the first column is its button. */
  onOpen?: (row: Row) => void
}

export function Table<Row>({ label, columns, rows, keyOf, linkOf, onOpen }: TableProps<Row>) {
  const body = useRef<HTMLTableSectionElement>(null)
  useListKeys(body)
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
        <tbody ref={body}>
          {rows.map((row) => (
            <TableRow key={keyOf(row)} row={row} columns={columns} to={linkOf?.(row)} onOpen={onOpen} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function cellLook<Row>({ align, wideOnly, className }: Column<Row>, more: string): string {
  return classes(
    // On a phone the last one that is shown need not be the last one.
    'px-2 first:pl-4 last:pr-4 sm:first:pl-5 sm:last:pr-5 max-sm:not-has-[~_:not(.wide-only)]:pr-4',
    align === 'right' && 'numbers text-right',
    wideOnly && 'wide-only hidden sm:table-cell',
    className,
    more,
  )
}

/** Its buttons can be pressed though the row's link lies over all of it. */
const aboveLink = 'relative z-[1] w-fit max-w-full empty:hidden has-[button,a]:z-[2]'

interface TableRowProps<Row> {
  row: Row
  columns: readonly Column<Row>[]
  to: string | undefined
  onOpen: ((row: Row) => void) | undefined
}

const opener =
  'after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent'

/** What stands above the opener's area, as a text that can be marked, opens the row as well. */
function openByClick({ target, currentTarget }: MouseEvent<HTMLTableRowElement>): void {
  if (target instanceof Element && target.closest('a, button, input, label')) return
  if (getSelection()?.isCollapsed) currentTarget.querySelector<HTMLElement>('[data-row]')?.click()
}

function TableRow<Row>({ row, columns, to, onOpen }: TableRowProps<Row>) {
  const isOpened = to !== undefined || onOpen !== undefined
  return (
    <tr
      onClick={isOpened ? openByClick : undefined}
      className={classes(
        'relative border-b last:border-b-0',
        isOpened && 'focus-within:bg-hover hover:bg-hover',
      )}
    >
      {columns.map((column, index) => (
        <td key={column.id} className={cellLook(column, 'h-11 py-1.5')}>
          {index === 0 && to ? (
            <Link to={to} data-row className={opener}>
              {column.cell(row)}
            </Link>
          ) : index === 0 && onOpen ? (
            <button
              type="button"
              data-row
              onClick={() => onOpen(row)}
              className={classes('block w-full text-left', opener)}
            >
              {column.cell(row)}
            </button>
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
