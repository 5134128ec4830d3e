// The page of numbers: outcomes of mail over 24 hours to 30 days, sending health, and the usage of limits.
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Segments } from '../../parts/form/segments.tsx'
import { Skeleton } from '../../parts/list/skeleton.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { numbers } from '../../texts/numbers.ts'
import { Destinations } from './destinations.tsx'
import { DomainTraffic } from './domain-traffic.tsx'
import { Facts } from './facts.tsx'
import { Latency } from './latency.tsx'
import { Limits } from './limits.tsx'
import { metricsQuery, type Span, type Told } from './queries.ts'
import { Rates } from './rates.tsx'

const spans = Object.entries(numbers.spans).map(([value, label]) => ({ value: value as Span, label }))

export function Numbers() {
  const { hours } = useSearch({ strict: false })
  const navigate = useNavigate()
  const span = spans.find(({ value }) => value === hours)?.value ?? '24'
  const query = useQuery({ ...metricsQuery(span), placeholderData: (shown) => shown })
  const choose = (value: Span) =>
    void navigate({ to: '/numbers', search: value === '24' ? {} : { hours: value }, replace: true })
  const switcher = <Segments label={numbers.span} options={spans} value={span} onChange={choose} />
  return (
    <Page title={numbers.title} lead={numbers.lead} actions={switcher}>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
        <Loaded query={query} waiting={<Waiting />}>
          {(told) => <Window told={told} />}
        </Loaded>
        <Limits />
        <DomainTraffic />
      </div>
    </Page>
  )
}

function Window({ told }: { told: Told }) {
  const { now } = told
  return (
    <>
      <Facts told={told} />
      <Rates rates={now.rates} />
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 lg:grid-cols-[minmax(0,1fr)_minmax(0,1.4fr)]">
        <Latency latencyMs={now.latencyMs} />
        <Destinations destinations={now.topDestinations} />
      </div>
    </>
  )
}

/** As high as the content that follows. */
function Waiting() {
  return (
    <>
      <Skeleton className="h-[404px]" />
      <Skeleton className="h-56" />
      <Skeleton className="h-56" />
    </>
  )
}
