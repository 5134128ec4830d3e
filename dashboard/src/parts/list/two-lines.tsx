// A cell of two lines: what a row is about, and what is said of it in small type.
import type { ReactNode } from 'react'

interface TwoLinesProps {
  first: ReactNode
  second: ReactNode
  /** The whole of the second line, if that may be cut. */
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
