// The count of each fact, compared with the previous period, as buttons that draw the fact.
import { ArrowDown, ArrowUp } from 'lucide-react'
import { useMemo, useState } from 'react'
import type { Tone } from '../../parts/badge.tsx'
import { Chart } from '../../parts/chart.tsx'
import { classes } from '../../parts/classes.ts'
import { count } from '../../parts/numbers.ts'
import { numbers } from '../../texts/numbers.ts'
import { type Fact, facts, type Told } from './queries.ts'

const tones: Record<Fact, Tone | 'violet'> = {
  accepted: 'note',
  delivered: 'good',
  bounced: 'bad',
  failed: 'violet',
  deferred: 'wait',
  complained: 'accent',
  received: 'idle',
}
const hourlyMost = 72

export function Facts({ told: { now, before } }: { told: Told }) {
  const [drawn, setDrawn] = useState<readonly Fact[]>(['accepted', 'delivered', 'bounced'])
  const flip = (fact: Fact) => setDrawn((shown) => flipped(shown, fact))
  const times = useMemo(() => now.series.map(({ at }) => at), [now])
  const series = useMemo(
    () =>
      facts
        .filter((fact) => drawn.includes(fact))
        .map((fact) => ({
          label: numbers.facts[fact],
          tone: tones[fact],
          values: now.series.map((one) => one[fact]),
        })),
    [now, drawn],
  )
  const grain = now.windowHours <= hourlyMost ? numbers.byHour : numbers.byDay
  return (
    <section aria-label={numbers.chart} className="overflow-clip rounded-lg border bg-surface">
      <div className="-mr-px grid grid-cols-2 sm:grid-cols-4 lg:grid-cols-7">
        {facts.map((fact) => (
          <FactTile
            key={fact}
            fact={fact}
            value={now.totals[fact]}
            before={before?.[fact] ?? null}
            hours={now.windowHours}
            isDrawn={drawn.includes(fact)}
            onFlip={() => flip(fact)}
          />
        ))}
      </div>
      <div className="px-4 pt-4 pb-3 sm:px-5">
        <Chart
          label={`${numbers.chart}, ${grain}`}
          times={times}
          series={series}
          heightPx={260}
          format={count}
        />
        <p className="mt-2 text-xs text-faint">
          {grain}; {numbers.running}.{' '}
          {before ? numbers.compared(spanBefore(now.windowHours)) : numbers.noBefore}
        </p>
      </div>
    </section>
  )
}

function spanBefore(hours: number): string {
  return (numbers.before as Record<string, string>)[String(hours)] ?? ''
}

/** Keeps at least one fact shown. */
function flipped(shown: readonly Fact[], fact: Fact): readonly Fact[] {
  if (!shown.includes(fact)) return [...shown, fact]
  return shown.length > 1 ? shown.filter((one) => one !== fact) : shown
}

interface FactTileProps {
  fact: Fact
  value: number
  before: number | null
  hours: number
  isDrawn: boolean
  onFlip: () => void
}

function FactTile({ fact, value, before, hours, isDrawn, onFlip }: FactTileProps) {
  return (
    <button
      type="button"
      aria-pressed={isDrawn}
      onClick={onFlip}
      title={numbers.meanings[fact]}
      className={classes(
        'grid grid-rows-[1fr_auto_auto] items-start gap-0.5 border-r border-b px-4 py-3 text-left -outline-offset-2 hover:bg-hover',
        !isDrawn && 'bg-page',
      )}
    >
      <span className="flex items-center gap-1.5 text-sm text-muted">
        <span
          aria-hidden
          className={classes('size-2 rounded-full border', !isDrawn && 'border-edge')}
          style={isDrawn ? { background: `var(--${tones[fact]})`, borderColor: 'transparent' } : undefined}
        />
        {numbers.facts[fact]}
      </span>
      <span className="numbers text-2xl font-semibold tracking-tight">{count(value)}</span>
      {before !== null && <Change value={value} before={before} hours={hours} />}
    </button>
  )
}

function Change({ value, before, hours }: { value: number; before: number; hours: number }) {
  const earlier = spanBefore(hours)
  const percent = before > 0 ? Math.round(((value - before) / before) * 100) : null
  const Arrow = percent !== null && percent < 0 ? ArrowDown : ArrowUp
  const [visible, spoken] =
    percent === null
      ? ['', value > 0 ? numbers.noneBefore : numbers.same]
      : percent === 0
        ? ['±0 %', numbers.same]
        : [`${Math.abs(percent)} %`, (percent > 0 ? numbers.more : numbers.fewer)(Math.abs(percent))]
  return (
    <span
      className="flex min-h-4 items-center gap-0.5 text-xs text-faint"
      title={`${spoken} ${earlier}: ${count(before)}`}
    >
      <span className="sr-only">{`${spoken} ${earlier}`}</span>
      <span aria-hidden className="flex items-center gap-0.5">
        {percent !== null && percent !== 0 && <Arrow size={12} />}
        {visible}
      </span>
    </span>
  )
}
