// What /metrics of this node has, for people.
import { SearchX } from 'lucide-react'
import { useDeferredValue, useRef, useState } from 'react'
import { Card } from '../parts/card.tsx'
import { Empty } from '../parts/empty.tsx'
import { TextField } from '../parts/form/field.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Page } from '../parts/page.tsx'
import { useShortcut } from '../parts/shortcut.ts'
import { desk } from '../texts/desk.ts'
import type { Answer } from './client.ts'
import { useNumbers } from './queries.ts'
import { writtenBytes } from './written.ts'

const { numbers: words } = desk
type Metric = Answer<'/numbers'>['numbers'][number]

export function Numbers() {
  const [filter, setFilter] = useState('')
  const wanted = useDeferredValue(filter.trim().toLowerCase())
  const field = useRef<HTMLInputElement>(null)
  useShortcut({ keys: '/', label: words.filter, group: words.title }, () => field.current?.focus())
  return (
    <Page title={words.title} lead={words.lead}>
      <Loaded query={useNumbers()}>
        {({ numbers }) => (
          <div className="grid gap-5">
            <Now numbers={numbers} />
            <TextField
              ref={field}
              type="search"
              label={words.filter}
              labelHidden
              placeholder={words.filter}
              value={filter}
              onChange={(event) => setFilter(event.target.value)}
            />
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

/** The few that say how this node does. */
const chosen: readonly [label: string, name: string, format: (value: number) => string, labels?: string][] = [
  [words.lag, 'nodejs_eventloop_lag_p99_seconds', milliseconds],
  [words.memory, 'process_resident_memory_bytes', writtenBytes],
  [words.heap, 'nodejs_heap_size_used_bytes', writtenBytes],
  [words.cpu, 'process_cpu_seconds_total', seconds],
  [words.roundTrip, 'posthorn_database_round_trip_seconds', milliseconds],
  [words.pool, 'posthorn_database_pool_connections', (value) => value.toLocaleString('en'), 'waiting'],
]

function Now({ numbers }: { numbers: readonly Metric[] }) {
  const figures = chosen.flatMap(([label, name, format, state]) => {
    const values = numbers.find((metric) => metric.name === name)?.values ?? []
    const found = values.find(({ labels }) => state === undefined || labels['state'] === state)
    return found ? [{ label, text: format(found.value) }] : []
  })
  return (
    <Card title={words.key}>
      <dl className="grid grid-cols-2 gap-x-6 gap-y-4 sm:grid-cols-3 lg:grid-cols-6">
        {figures.map(({ label, text }) => (
          <div key={label}>
            <dt className="text-sm text-faint">{label}</dt>
            <dd className="numbers text-lg font-semibold">{text}</dd>
          </div>
        ))}
      </dl>
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
        <p className="text-sm text-pretty text-faint">{help}</p>
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

/** Each series in a line; of a histogram how many there were, and their mean. */
function linesOf({ name, values }: Metric): { label: string; text: string }[] {
  const labelOf = ({ of: _, ...labels }: Record<string, string>) => Object.values(labels).join(' · ')
  const counts = new Map(
    values.filter(({ labels }) => labels['of'] === 'count').map((one) => [labelOf(one.labels), one.value]),
  )
  return values.flatMap(({ labels, value }) => {
    const label = labelOf(labels)
    const count = counts.get(label) ?? 0
    if (labels['of'] === 'count') return []
    if (labels['of'] !== 'sum') return [{ label, text: amount(value) }]
    if (count === 0) return []
    const mean = name.endsWith('_seconds') ? milliseconds(value / count) : amount(value / count)
    return [{ label, text: words.mean(amount(count), mean) }]
  })
}
