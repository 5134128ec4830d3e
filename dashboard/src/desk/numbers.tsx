// The /metrics of this node in a readable form.
import { SearchX } from 'lucide-react'
import { useDeferredValue, useState } from 'react'
import { binaryBytes } from '../parts/bytes.ts'
import { Card } from '../parts/card.tsx'
import { Empty } from '../parts/empty.tsx'
import { type Figure, Figures } from '../parts/figures.tsx'
import { SearchField } from '../parts/form/search-field.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { count } from '../parts/numbers.ts'
import { Page } from '../parts/page.tsx'
import { desk } from '../texts/desk.ts'
import type { Answer } from './client.ts'
import { useNumbers } from './queries.ts'

const { numbers: words } = desk
type Metric = Answer<'/numbers'>['numbers'][number]

export function Numbers() {
  const [filter, setFilter] = useState('')
  const wanted = useDeferredValue(filter.trim().toLowerCase())
  return (
    <Page title={words.title} lead={words.lead}>
      <Loaded query={useNumbers()}>
        {({ numbers }) => (
          <div className="grid gap-5">
            <Now numbers={numbers} />
            <SearchField label={words.filter} group={words.title} value={filter} onChange={setFilter} />
            <All
              metrics={numbers.filter(({ name, help }) => `${name} ${help}`.toLowerCase().includes(wanted))}
            />
          </div>
        )}
      </Loaded>
    </Page>
  )
}

const milliseconds = (seconds: number) =>
  `${(seconds * 1000).toLocaleString('en', { maximumFractionDigits: 1 })} ms`
const seconds = (amount: number) => `${amount.toLocaleString('en', { maximumFractionDigits: 1 })} s`

/** The few metrics that show how this node performs. */
const chosen: readonly [label: string, name: string, format: (value: number) => string, labels?: string][] = [
  [words.lag, 'nodejs_eventloop_lag_p99_seconds', milliseconds],
  [words.memory, 'process_resident_memory_bytes', binaryBytes],
  [words.heap, 'nodejs_heap_size_used_bytes', binaryBytes],
  [words.cpu, 'process_cpu_seconds_total', seconds],
  [words.roundTrip, 'posthorn_database_round_trip_seconds', milliseconds],
  [words.pool, 'posthorn_database_pool_connections', count, 'waiting'],
]

function Now({ numbers }: { numbers: readonly Metric[] }) {
  const figures = chosen.flatMap(([label, name, format, state]): Figure[] => {
    const values = numbers.find((metric) => metric.name === name)?.values ?? []
    const found = values.find(({ labels }) => state === undefined || labels['state'] === state)
    return found ? [[label, format(found.value)]] : []
  })
  return (
    <Card title={words.key}>
      <Figures columns="sm:grid-cols-3 lg:grid-cols-6" figures={figures} />
    </Card>
  )
}

function All({ metrics }: { metrics: readonly Metric[] }) {
  if (metrics.length === 0)
    return (
      <Empty icon={SearchX} title={words.none}>
        {words.noneWhat}
      </Empty>
    )
  return (
    <Card flush>
      <ul className="divide-y">
        {metrics.map((metric) => (
          <MetricLine key={metric.name} metric={metric} />
        ))}
      </ul>
    </Card>
  )
}

const maxSeries = 60

function MetricLine({ metric }: { metric: Metric }) {
  const { name, help } = metric
  const lines = linesOf(metric)
  return (
    <li className="grid gap-x-6 gap-y-1 px-4 py-3 sm:px-5 md:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
      <div className="min-w-0">
        <code className="text-sm break-all">{name}</code>
        <p className="text-sm text-balance text-faint">{help}</p>
      </div>
      {lines.length === 0 && <p className="text-sm text-faint">{words.nothingCounted}</p>}
      <dl className="grid content-start gap-0.5 text-sm">
        {lines.slice(0, maxSeries).map(({ label, text }) => (
          <div key={label} className="flex justify-between gap-4">
            <dt className="min-w-0 break-words text-muted">{label}</dt>
            <dd className="numbers">{text}</dd>
          </div>
        ))}
      </dl>
    </li>
  )
}

const amount = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 6 })

/** Returns one line per series. For a histogram, the line has its count and mean. */
function linesOf({ name, values }: Metric): { label: string; text: string }[] {
  const labelOf = ({ of: _, ...labels }: Record<string, string>) => Object.values(labels).join(' · ')
  const counts = new Map(
    values.filter(({ labels }) => labels['of'] === 'count').map((one) => [labelOf(one.labels), one.value]),
  )
  return values.flatMap(({ labels, value }) => {
    const label = labelOf(labels)
    const samples = counts.get(label) ?? 0
    if (labels['of'] === 'count') return []
    if (labels['of'] !== 'sum') return [{ label, text: amount(value) }]
    if (samples === 0) return []
    const mean = name.endsWith('_seconds') ? milliseconds(value / samples) : amount(value / samples)
    return [{ label, text: words.mean(amount(samples), mean) }]
  })
}
