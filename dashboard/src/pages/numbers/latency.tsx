// The time that mail takes, by percentile.
import { Card } from '../../parts/card.tsx'
import { duration } from '../../parts/duration.ts'
import { numbers } from '../../texts/numbers.ts'
import type { Metrics } from './queries.ts'

const percentiles = ['p50', 'p95', 'p99'] as const

export function Latency({ latencyMs }: { latencyMs: Metrics['latencyMs'] }) {
  const most = latencyMs.p99
  return (
    <Card title={numbers.latency} lead={numbers.latencyLead}>
      {most === null ? (
        <p className="text-muted">{numbers.noLatency}</p>
      ) : (
        <ul className="grid gap-4">
          {percentiles.map((name) => (
            <Percentile key={name} name={name} valueMs={latencyMs[name] ?? 0} mostMs={most} />
          ))}
        </ul>
      )}
    </Card>
  )
}

interface PercentileProps {
  name: (typeof percentiles)[number]
  valueMs: number
  mostMs: number
}

function Percentile({ name, valueMs, mostMs }: PercentileProps) {
  const [share, rest] = numbers.percentiles[name]
  return (
    <li>
      <div className="mb-1.5 flex items-baseline justify-between gap-4">
        <span className="text-sm text-muted">
          <span className="font-medium text-ink">{share}</span> {rest}
        </span>
        <span className="numbers font-semibold">{duration(valueMs)}</span>
      </div>
      <div aria-hidden className="h-1.5 overflow-hidden rounded-full bg-idle-soft">
        <div
          className="h-full rounded-full bg-note"
          style={{ width: `${Math.max(1, (valueMs / Math.max(1, mostMs)) * 100)}%` }}
        />
      </div>
    </li>
  )
}
