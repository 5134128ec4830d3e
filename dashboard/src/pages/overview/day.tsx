// The day of an organization: numbers of the last 24 hours, the latest sends, and recent problems.
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { Card } from '../../parts/card.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { ButtonLink } from '../../parts/form/button.tsx'
import { Skeleton } from '../../parts/list/skeleton.tsx'
import { percent } from '../../parts/numbers.ts'
import { Page } from '../../parts/page.tsx'
import { overview } from '../../texts/overview.ts'
import { LatestSends } from './latest-sends.tsx'
import { Problems } from './problems.tsx'
import { Tile } from './tile.tsx'

const againMs = 30_000
const whole = new Intl.NumberFormat('en')
const { tiles, tileNotes } = overview

export function Day({ submissions }: { submissions: readonly Schemas['Submission'][] }) {
  return (
    <Page title={overview.title}>
      <div className="grid gap-6">
        <Numbers />
        <div className="grid items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <Card
            title={overview.latest}
            flush
            actions={
              <ButtonLink to="/sending" size="small" variant="quiet">
                {overview.latestAll}
              </ButtonLink>
            }
          >
            <LatestSends submissions={submissions} />
          </Card>
          <Problems />
        </div>
      </div>
    </Page>
  )
}

function Numbers() {
  const metrics = useQuery({
    queryKey: ['metrics', 24],
    queryFn: () => read(api.GET('/v1/metrics/delivery', { params: { query: { hours: 24 } } })),
    refetchInterval: againMs,
  })
  return (
    <section aria-labelledby="last24">
      <div className="mb-2 flex items-center justify-between">
        <h2 id="last24" className="font-semibold">
          {overview.last24}
        </h2>
        <ButtonLink to="/numbers" size="small" variant="quiet">
          {overview.numbersLink}
        </ButtonLink>
      </div>
      <ErrorNote error={metrics.error} onRetry={() => void metrics.refetch()} />
      {metrics.data ? <Tiles metrics={metrics.data} /> : !metrics.error && <Skeleton className="h-34" />}
    </section>
  )
}

function Tiles({ metrics }: { metrics: Schemas['DeliveryMetrics'] }) {
  const { totals, rates, latencyMs, series } = metrics
  const finished = totals.delivered + totals.bounced + totals.failed
  const notes = {
    accepted: tileNotes.accepted(totals.recipients),
    delivered: latencyMs.p50 === null ? tileNotes.deliveredNone : tileNotes.delivered(written(latencyMs.p50)),
    bounced:
      rates.bounce === null || finished === 0
        ? tileNotes.bouncedNone
        : tileNotes.bounced(percent(rates.bounce)),
    received: tileNotes.received,
  }
  const tones = { accepted: 'note', delivered: 'good', bounced: 'bad', received: 'accent' } as const
  return (
    <div className="grid grid-cols-2 overflow-clip rounded-lg border bg-surface lg:grid-cols-4 [&>*]:border-t [&>*]:border-l [&>*]:-mt-px [&>*]:-ml-px">
      {(['accepted', 'delivered', 'bounced', 'received'] as const).map((name) => (
        <Tile
          key={name}
          label={tiles[name]}
          value={whole.format(totals[name])}
          note={notes[name]}
          tone={tones[name]}
          times={series.map(({ at }) => at)}
          values={series.map((hour) => hour[name])}
        />
      ))}
    </div>
  )
}

function written(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
