// One number of the day, with its hours as small columns.
import type { Tone } from '../../parts/badge.tsx'
import { overview } from '../../texts/overview.ts'

interface TileProps {
  label: string
  value: string
  note: string
  tone: Tone
  times: readonly string[]
  values: readonly number[]
}

const heightPx = 28
const stepPx = 5

export function Tile({ label, value, note, tone, times, values }: TileProps) {
  const most = Math.max(1, ...values)
  return (
    <div className="min-w-0 p-4 sm:p-5">
      <p className="text-sm text-muted">{label}</p>
      <p className="numbers mt-1 text-2xl font-semibold tracking-tight">{value}</p>
      <p className="truncate text-sm text-faint" title={note}>
        {note}
      </p>
      <svg
        role="img"
        aria-label={overview.hourly(label)}
        viewBox={`0 0 ${values.length * stepPx} ${heightPx}`}
        preserveAspectRatio="none"
        className="mt-3 h-7 w-full"
      >
        {values.map((count, hour) => {
          const columnPx = count === 0 ? 1 : Math.max(2, (count / most) * heightPx)
          return (
            <rect
              key={times[hour]}
              x={hour * stepPx}
              y={heightPx - columnPx}
              width={stepPx - 1.2}
              height={columnPx}
              style={{ fill: count === 0 ? 'var(--line-strong)' : `var(--${tone})` }}
            />
          )
        })}
      </svg>
    </div>
  )
}
