// Numbers under their names, in large type.
import type { ReactNode } from 'react'
import { classes } from './classes.ts'
import { count } from './numbers.ts'

export type Figure = readonly [name: string, value: ReactNode, note?: ReactNode]

interface FiguresProps {
  figures: readonly Figure[]
  /** Classes that set the number of columns by width. */
  columns: string
}

export function Figures({ figures, columns }: FiguresProps) {
  return (
    <dl className={classes('grid grid-cols-2 gap-x-6 gap-y-4', columns)}>
      {figures.map(([name, value, note]) => (
        <div key={name}>
          <dt className="text-sm text-faint">{name}</dt>
          <dd className="numbers text-lg font-semibold">
            {typeof value === 'number' ? count(value) : value}
            {note && <span className="text-sm font-normal text-muted">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  )
}
