// The limits of the organization and their usage.
import { useQuery } from '@tanstack/react-query'
import { writtenBytes } from '../../parts/bytes.ts'
import { Card } from '../../parts/card.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { count } from '../../parts/numbers.ts'
import { Progress } from '../../parts/progress.tsx'
import { numbers } from '../../texts/numbers.ts'
import { usageQuery } from './queries.ts'

const names = [
  ...(['messagesPerMinute', 'messagesPerDay', 'recipientsPerDay', 'receivedMessagesPerDay'] as const),
  ...(['receivedBytesPerDay', 'storedBytes', 'inboxes', 'domains', 'webhookEndpoints'] as const),
  ...(['managedStarter'] as const),
]

export function Limits() {
  const query = useQuery(usageQuery)
  return (
    <Card title={numbers.limits} lead={numbers.limitsLead}>
      <Loaded query={query}>
        {({ limits, used }) => (
          <div className="grid gap-x-8 gap-y-5 sm:grid-cols-2 lg:grid-cols-3">
            {names.map((name) => (
              <Progress
                key={name}
                label={numbers.limit[name]}
                value={used[name]}
                max={limits[name]}
                format={name.includes('Bytes') ? writtenBytes : count}
                limit
              />
            ))}
          </div>
        )}
      </Loaded>
    </Card>
  )
}
