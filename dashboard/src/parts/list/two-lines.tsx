// A cell of two lines: the subject of a row, and details in small type.
import type { ReactNode } from 'react'

interface TwoLinesProps {
  first: ReactNode
  second: ReactNode
  /** The full second line, if it may be truncated. */
  title?: string
}

export function TwoLines({ first, second, title }: TwoLinesProps) {
  return (
    <span className="block min-w-0">
      <span className="block font-medium wrap-anywhere">{first}</span>
      {second && (
        <span className="line-clamp-2 text-xs wrap-anywhere text-faint" title={title}>
          {second}
        </span>
      )}
    </span>
  )
}
