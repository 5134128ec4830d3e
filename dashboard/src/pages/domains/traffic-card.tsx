// The domain's traffic, compared with its limits and with the rates at which providers become suspicious.
import { useQuery } from '@tanstack/react-query'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { percent } from '../../parts/numbers.ts'
import { Progress } from '../../parts/progress.tsx'
import { domains } from '../../texts/domains.ts'
import { parts } from '../../texts/parts.ts'
import { trafficQuery } from './domain-queries.ts'

const numbers = new Intl.NumberFormat('en')
/** At these rates providers take action. */
const alarming = { bounce: 0.05, complaint: 0.003 }
const noticeable = { bounce: 0.02, complaint: 0.001 }

export function TrafficCard({ domainId }: { domainId: string }) {
  const query = useQuery(trafficQuery(domainId))
  return (
    <Card
      title={domains.traffic}
      lead={domains.trafficWhat}
      actions={query.data && <StateBadge state={query.data.status} />}
    >
      <Loaded query={query}>
        {({ reasons, usage, limits }) => (
          <div className="grid gap-5">
            {reasons.length > 0 && (
              <ul className="grid list-disc gap-1 pl-4">
                {reasons.map((reason) => (
                  <li key={reason}>{reason}</li>
                ))}
              </ul>
            )}
            <div className="grid gap-4 sm:grid-cols-3">
              <Progress
                limit
                label={domains.perMinute}
                value={usage.sentLastMinute}
                max={limits.messagesPerMinute}
              />
              <Progress limit label={domains.perDay} value={usage.sentToday} max={limits.messagesPerDay} />
              <Progress
                limit
                label={domains.recipientsPerDay}
                value={usage.recipientsToday}
                max={limits.recipientsPerDay}
              />
            </div>
            <dl className="grid gap-4 sm:grid-cols-3">
              <Fact label={domains.receivedToday} value={numbers.format(usage.receivedToday)} />
              <Rate kind="bounce" value={usage.bounceRate24h} />
              <Rate kind="complaint" value={usage.complaintRate24h} />
            </dl>
          </div>
        )}
      </Loaded>
    </Card>
  )
}

function Fact({
  label,
  value,
  hint,
  color,
}: {
  label: string
  value: string
  hint?: string
  color?: string
}) {
  return (
    <div>
      <dt className="text-sm text-faint">{label}</dt>
      <dd>
        <span className={`numbers text-lg font-semibold ${color ?? ''}`}>{value}</span>
        {hint && <span className="block text-sm text-balance text-faint">{hint}</span>}
      </dd>
    </div>
  )
}

function Rate({ kind, value }: { kind: 'bounce' | 'complaint'; value: number | null }) {
  const label = domains[`${kind}Rate`]
  if (value === null) return <Fact label={label} value={parts.notAvailable} hint={domains.noRate} />
  const color = value >= alarming[kind] ? 'text-bad' : value >= noticeable[kind] ? 'text-wait' : ''
  return <Fact label={label} value={percent(value)} hint={domains[`${kind}RateGood`]} color={color} />
}
