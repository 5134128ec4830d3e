// What an organization sent and received in the last 24 hours, and what became of it.
import { Card } from '../../parts/card.tsx'
import { desk } from '../../texts/desk.ts'
import type { Organization } from '../client.ts'

const { organization: words } = desk
type LastDayNumbers = Organization['lastDay']

export function LastDay({ lastDay }: { lastDay: LastDayNumbers }) {
  const { rates } = lastDay
  return (
    <Card title={words.lastDay}>
      <dl className="grid grid-cols-2 gap-x-6 gap-y-4 sm:grid-cols-4">
        <Figure name={words.accepted} value={lastDay.accepted} />
        <Figure name={words.recipients} value={lastDay.recipients} />
        <Figure name={words.delivered} value={lastDay.delivered} share={rates.delivery} />
        <Figure name={words.deferred} value={lastDay.deferred} />
        <Figure name={words.bounced} value={lastDay.bounced} share={rates.bounce} />
        <Figure name={words.failed} value={lastDay.failed} />
        <Figure name={words.complained} value={lastDay.complained} share={rates.complaint} />
        <Figure name={words.received} value={lastDay.received} />
      </dl>
    </Card>
  )
}

function Figure({ name, value, share }: { name: string; value: number; share?: number | null }) {
  return (
    <div>
      <dt className="text-sm text-faint">{name}</dt>
      <dd className="numbers text-lg font-semibold">
        {value.toLocaleString('en')}
        {share !== undefined && share !== null && (
          <span className="ml-1.5 text-sm font-normal text-muted">{words.rate(share)}</span>
        )}
      </dd>
    </div>
  )
}
