// The health of sending: three rates, each with its band and advice.
import { Badge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { classes } from '../../parts/classes.ts'
import { percent } from '../../parts/numbers.ts'
import { numbers } from '../../texts/numbers.ts'
import { parts } from '../../texts/parts.ts'
import type { Metrics } from './queries.ts'

type Rate = 'delivery' | 'bounce' | 'complaint'
type Health = 'good' | 'wait' | 'bad' | 'idle'

interface Bands {
  /** The edges of the three bands and the ends of the scale, ascending. */
  edges: readonly [number, number, number, number]
  /** The meaning of the bands, from low to high. */
  order: readonly ['good' | 'bad', 'wait', 'good' | 'bad']
}

const bands: Record<Rate, Bands> = {
  delivery: { edges: [0.8, 0.9, 0.95, 1], order: ['bad', 'wait', 'good'] },
  bounce: { edges: [0, 0.02, 0.05, 0.1], order: ['good', 'wait', 'bad'] },
  complaint: { edges: [0, 0.001, 0.003, 0.006], order: ['good', 'wait', 'bad'] },
}

export function Rates({ rates }: { rates: Metrics['rates'] }) {
  return (
    <Card title={numbers.rates} lead={numbers.ratesLead}>
      <div className="grid gap-x-8 gap-y-6 lg:grid-cols-3">
        {(['delivery', 'bounce', 'complaint'] as const).map((rate) => (
          <RateBand key={rate} rate={rate} value={rates[rate]} />
        ))}
      </div>
    </Card>
  )
}

/** An edge value belongs to the worse band if more is worse, and to the better band if more is better. */
export function healthOf(rate: Rate, value: number | null): Health {
  if (value === null) return 'idle'
  const { edges, order } = bands[rate]
  return order[value < edges[1] ? 0 : value < edges[2] ? 1 : 2]
}

function RateBand({ rate, value }: { rate: Rate; value: number | null }) {
  const health = healthOf(rate, value)
  return (
    <div className="min-w-0">
      <div className="flex items-center justify-between gap-3">
        <p className="text-sm text-muted">{numbers.rate[rate]}</p>
        <Badge tone={health}>{numbers.health[health]}</Badge>
      </div>
      <p className="numbers mt-0.5 text-2xl font-semibold tracking-tight">
        {value === null ? parts.notAvailable : percent(value)}
      </p>
      <p className="text-sm text-faint">{numbers.rateOf[rate]}</p>
      <Scale rate={rate} value={value} />
      <p className="mt-2 text-sm text-balance text-muted">{numbers.advice[rate][health]}</p>
    </div>
  )
}

const colors = { good: 'bg-good', wait: 'bg-wait', bad: 'bg-bad' }

/** Draws three bands of equal width. The mark shows its band, and its distance to an edge. */
function Scale({ rate, value }: { rate: Rate; value: number | null }) {
  const { edges, order } = bands[rate]
  return (
    <div aria-hidden className="mt-2.5">
      <div className="relative flex gap-0.5">
        {order.map((health, index) => (
          <span
            key={health}
            className={classes(
              'h-1.5 flex-1 opacity-45',
              colors[health],
              index === 0 && 'rounded-l-full',
              index === 2 && 'rounded-r-full',
            )}
          />
        ))}
        {value !== null && (
          <span
            className="absolute -top-1 h-3.5 w-1 -translate-x-1/2 rounded-full bg-ink ring-2 ring-surface"
            style={{ left: `${placeOf(value, edges) * 100}%` }}
          />
        )}
      </div>
      <div className="numbers relative mt-1 h-4 text-xs text-faint">
        {[1, 2].map((edge) => (
          <span key={edge} className="absolute -translate-x-1/2" style={{ left: `${(edge / 3) * 100}%` }}>
            {percent(edges[edge as 1 | 2])}
          </span>
        ))}
      </div>
    </div>
  )
}

function placeOf(value: number, edges: Bands['edges']): number {
  const [low, , , high] = edges
  const inside = Math.min(high, Math.max(low, value))
  const band = inside < edges[1] ? 0 : inside < edges[2] ? 1 : 2
  const [from, to] = [edges[band]!, edges[band + 1]!]
  return (band + (inside - from) / (to - from)) / 3
}
