// The mail that an organization sent and received in the last 24 hours, and its outcomes.
import { Card } from '../../parts/card.tsx'
import { Figures } from '../../parts/figures.tsx'
import { percent } from '../../parts/numbers.ts'
import { desk } from '../../texts/desk.ts'
import type { Organization } from '../client.ts'

const { organization: words } = desk

export function LastDay({ lastDay }: Pick<Organization, 'lastDay'>) {
  const { rates } = lastDay
  return (
    <Card title={words.lastDay}>
      <Figures
        columns="sm:grid-cols-4"
        figures={[
          [words.accepted, lastDay.accepted],
          [words.recipients, lastDay.recipients],
          [words.delivered, lastDay.delivered, share(rates.delivery)],
          [words.deferred, lastDay.deferred],
          [words.bounced, lastDay.bounced, share(rates.bounce)],
          [words.failed, lastDay.failed],
          [words.complained, lastDay.complained, share(rates.complaint)],
          [words.received, lastDay.received],
        ]}
      />
    </Card>
  )
}

const share = (rate: number | null) => rate !== null && <span className="ml-1.5">{percent(rate)}</span>
