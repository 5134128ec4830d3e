// The usage of the organization's limits.
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { binaryBytes } from '../../parts/bytes.ts'
import { Card } from '../../parts/card.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Progress } from '../../parts/progress.tsx'
import { settings } from '../../texts/settings.ts'

const texts = settings.limits
const againMs = 30_000
type Usage = Schemas['Usage']
type Name = keyof typeof texts.names

const groups: [title: string, names: Name[]][] = [
  [texts.sending, ['messagesPerMinute', 'messagesPerDay', 'recipientsPerDay']],
  [texts.receiving, ['receivedMessagesPerDay', 'receivedBytesPerDay']],
  [texts.holding, ['storedBytes', 'inboxes', 'managedStarter', 'domains', 'webhookEndpoints']],
]

export function Limits() {
  const query = useQuery({
    queryKey: ['usage'],
    queryFn: () => read(api.GET('/v1/usage')),
    refetchInterval: againMs,
  })
  return (
    <Card title={texts.title} lead={texts.lead}>
      <Loaded query={query}>{(usage) => <Groups usage={usage} />}</Loaded>
    </Card>
  )
}

function Groups({ usage: { limits, used } }: { usage: Usage }) {
  return (
    <div className="grid gap-x-8 gap-y-6 sm:grid-cols-2">
      {groups.map(([title, names]) => (
        <section key={title}>
          <h3 className="mb-3 text-sm font-semibold text-faint">{title}</h3>
          <div className="grid gap-3.5">
            {names.map((name) => (
              <Progress
                key={name}
                label={texts.names[name]}
                value={used[name]}
                max={limits[name]}
                {...(name.includes('Bytes') ? { format: binaryBytes } : {})}
                limit
              />
            ))}
          </div>
        </section>
      ))}
      <p className="self-end text-sm text-muted">{texts.more}</p>
    </div>
  )
}
