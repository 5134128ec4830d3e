// A table whose rows open by click, `j`, `k` and Enter, with fewer columns on a phone.
import { Link } from '@tanstack/react-router'
import { type MouseEvent, type ReactNode, useRef } from 'react'
import { classes } from '../classes.ts'
import { useListKeys } from './list-keys.ts'

export interface Column<Row> {
  id: string
  header: string
  cell: (row: Row) => ReactNode
  align?: 'right'
  /** Hidden below 640 px. */
  wideOnly?: boolean
  /** A class that sets its width, such as `w-32`. */
  className?: string
  /** Only screen readers get the header. */
  headerHidden?: boolean
}

export interface TableProps<Row> {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** The target of a row, such as `/domains/…`. The first column is its link. */
  linkOf?: (row: Row) => string
  /** Opens a row that has no address. The first column is then its button. */
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
    // On a phone the last visible column may not be the last column.
    'px-2 first:pl-4 last:pr-4 sm:first:pl-5 sm:last:pr-5 max-sm:not-has-[~_:not(.wide-only)]:pr-4',
    align === 'right' && 'numbers text-right',
    wideOnly && 'wide-only hidden sm:table-cell',
    className,
    more,
  )
}

/** Its buttons stay clickable, although the row's link covers the whole row. */
const aboveLink = 'relative z-[1] w-fit max-w-full empty:hidden has-[button,a]:z-[2]'

interface TableRowProps<Row> {
  row: Row
  columns: readonly Column<Row>[]
  to: string | undefined
  onOpen: ((row: Row) => void) | undefined
}

const opener =
  'after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent'

/** Clicks on content above the link, such as selectable text, open the row too. */
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
