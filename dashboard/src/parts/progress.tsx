// The used or completed part of a whole, as a bar and in numbers.
import { useId } from 'react'
import { classes } from './classes.ts'

const numbers = new Intl.NumberFormat('en')

interface ProgressProps {
  label: string
  value: number
  max: number
  /** Formats its numbers. */
  format?: (value: number) => string
  /** A full bar is bad, as for limits. */
  limit?: boolean
}

export function Progress({ label, value, max, format = numbers.format, limit }: ProgressProps) {
  const id = useId()
  const share = max > 0 ? Math.min(1, value / max) : 0
  const color = limit && share >= 1 ? 'bg-bad' : limit && share >= 0.8 ? 'bg-wait' : 'bg-accent'
  return (
    <div>
      <div className="mb-1.5 flex justify-between gap-4 text-sm">
        <span id={id}>{label}</span>
        <span className="numbers whitespace-nowrap text-muted">
          {format(value)} / {format(max)}
        </span>
      </div>
      <div
        role="progressbar"
        aria-labelledby={id}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(value, max)}
        aria-valuetext={`${format(value)} / ${format(max)}`}
        className="h-1.5 overflow-hidden rounded-full bg-idle-soft"
      >
        <div className={classes('h-full rounded-full', color)} style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  )
}
